"""Kinds of the apiextensions group, one module per version."""
