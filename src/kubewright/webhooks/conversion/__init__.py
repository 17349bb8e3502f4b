"""Conversion webhooks: declared, asked, answered."""
