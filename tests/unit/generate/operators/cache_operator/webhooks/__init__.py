"""The webhooks."""
