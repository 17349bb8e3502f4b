"""Authentication and authorization: certificates, tokens, impersonation, RBAC and reviews.

The router asks `access.RbacAccess`; `identities.Identities` has the rest.
"""
