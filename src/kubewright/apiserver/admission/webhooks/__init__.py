"""The plugins that call admission webhooks.

`configurations` compiles the webhook configurations in the store, `matcher` decides which webhooks are called for a
write, `reviews` are the requests and responses, `dispatcher` makes one call. `mutating` and `validating` are the two
plugins. Conversion webhooks are in `apiextensions.webhook_converter`.
"""
