"""An operator for the tests of the generators: two versions of a kind, a cluster-wide kind, webhooks, permissions."""
