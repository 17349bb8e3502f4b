"""Identity and permission in the embedded API server: certificates, tokens, impersonation, roles and reviews.

`access.RbacAccess` is what the front asks; `install` hooks everything else into a server.
"""
