"""Serving certificates: where they come from and when they are replaced. Not who is told to trust them; see
`webhooks.registration`."""
