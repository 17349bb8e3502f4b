"""Webhooks: servers elsewhere that are asked about writes, or convert custom resources.

`configurations` follows the webhook configurations in the store, `matcher` decides who is asked about a write,
`reviews` is what is sent and what may come back, `outbound.webhook_client` does it; `mutating` and `validating` are the
judges of the chain.
"""
