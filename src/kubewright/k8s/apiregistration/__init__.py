"""Kinds of the apiregistration group, one module per version."""
