"""Kinds of the certificates group, one module per version."""
