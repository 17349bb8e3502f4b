"""HTTP/1.1, content negotiation, request and response bodies (JSON, YAML, protobuf), query options and Status errors.

It knows no routes and no kinds: `front` routes, `verbs` act.
"""
