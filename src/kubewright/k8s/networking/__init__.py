"""Kinds of the networking group, one module per version."""
