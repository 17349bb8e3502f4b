"""Webhooks: servers elsewhere that are asked about writes, or convert custom resources.

`configurations` follows the webhook configurations in the store, `matching` decides who is asked about a write,
`reviews` is what is sent and what may come back, `calling` does it; `mutating` and `validating` are the judges that
admission asks, `conversion` converts custom resources.
"""
