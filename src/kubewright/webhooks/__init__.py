"""Webhooks: admission and conversion declared by a decorator and served over TLS."""
