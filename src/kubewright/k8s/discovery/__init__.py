"""Kinds of the discovery group, one module per version."""
