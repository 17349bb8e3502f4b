"""Kinds of the authentication group, one module per version."""
