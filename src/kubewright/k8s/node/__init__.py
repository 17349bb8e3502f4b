"""Kinds of the node group, one module per version."""
