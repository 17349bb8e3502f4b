"""The HTTPS server of the webhooks, and which handler answers which path."""
