"""Kinds of the batch group, one module per version."""
