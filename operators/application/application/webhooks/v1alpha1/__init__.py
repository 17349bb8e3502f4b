"""Webhooks for version v1alpha1."""
