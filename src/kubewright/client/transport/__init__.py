"""One request out, one response back: connections, TLS, retries, rate limits. Not verbs or kinds."""
