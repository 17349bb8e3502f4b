"""Dynamic resource allocation: which devices the claims of a pod get."""
