"""Bytes to requests, responses to bytes: HTTP/1.1, JSON, YAML, protobuf, content negotiation, Status errors. Not
routes, not kinds."""
