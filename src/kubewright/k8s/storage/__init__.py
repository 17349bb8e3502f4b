"""Kinds of the storage group, one module per version."""
