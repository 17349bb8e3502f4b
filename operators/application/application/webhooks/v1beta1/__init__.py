"""Webhooks for version v1beta1."""
