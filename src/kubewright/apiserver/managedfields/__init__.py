"""Who owns which field: server-side apply and `metadata.managedFields`.

`types` says how each field of a kind merges, `managed` records writes and applies intents, `conflicts` words the
refusal, `resets` says what an endpoint may not own, `scale` carries ownership between a kind and its scale. What
the other modules do to trees of JSON and to sets of fields is theirs alone. Nothing here stores, validates values
or fills in defaults: objects come in as the server would answer with them.
"""
