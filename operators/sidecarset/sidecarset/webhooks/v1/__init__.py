"""Webhooks for version v1."""
