"""The API server as an HTTP client: of webhooks, kubelets and aggregated API servers, and how it finds them.

It carries bytes and reviews; what they mean is known to `admission`, `apiextensions` and `proxy`.
"""
