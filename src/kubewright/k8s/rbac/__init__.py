"""Kinds of the rbac group, one module per version."""
