"""The operator podset."""
