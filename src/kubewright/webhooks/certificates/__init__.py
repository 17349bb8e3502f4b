"""Serving certificates: where they come from and when they are replaced.

The webhook server uses them, and so does the manager's metrics server. `webhooks.registration` tells the API server
which authority to trust.
"""
