"""The HTTPS server of the webhooks, and the router from paths to handlers."""
