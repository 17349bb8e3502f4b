"""What every verb works with: a served resource, one request for it, object metadata, and the contracts of
authentication, authorization and admission. Nothing here is about one kind."""
