"""Server-side apply and `metadata.managedFields`: which manager owns which field.

It is sigs.k8s.io/structured-merge-diff and k8s.io/apimachinery/pkg/util/managedfields in one:

- `field_manager`: records updates and applies configurations (fieldmanager.go, merge/update.go)
- `types`: how the fields of a kind merge, from its OpenAPI schema (schema/elements.go)
- `typed_values`, `merge`, `comparison`, `validation`: ToFieldSet, Merge and RemoveItems, Compare, Validate (typed/)
- `field_sets`, `path_elements`: sets of field paths (fieldpath/)
- `entries`: the entries of managedFields, encoded and capped (internal/managedfields.go, internal/capmanagers.go)
- `conflicts`, `last_applied`, `reset_fields`, `scale_handler`: what their names say

Nothing in here stores objects, validates values or sets defaults: objects come in as the server would return them. A
"configuration" is the object a client applies; the code calls it the intent.
"""
