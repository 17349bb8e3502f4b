"""Authentication and authorization: certificates, tokens, impersonation, RBAC and reviews.

The router asks `access.RbacAccess`; `identities.install` adds the rest to a server.
"""
