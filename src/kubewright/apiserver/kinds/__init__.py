"""What every verb works with: a served resource, one request for it, object metadata, and the contracts of access and
admission. Not the rules of any one kind."""
