"""Webhook configurations and CRDs in the cluster that point at this operator's webhooks. Not the answers."""
