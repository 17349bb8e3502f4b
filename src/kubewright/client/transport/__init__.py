"""One request out, one response back: connections, TLS, retries, throttling. Not verbs or kinds."""
