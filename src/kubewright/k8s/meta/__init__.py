"""Kinds of the meta group, one module per version."""
