"""Admission webhooks: declared, asked, answered. Not certificates or registration."""
