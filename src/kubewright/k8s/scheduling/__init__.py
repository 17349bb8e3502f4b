"""Kinds of the scheduling group, one module per version."""
