"""An operator for PostgreSQL.

`api` has the kinds, `children` says what belongs to a server, `servers` and `databases` are the reconcilers.
"""
