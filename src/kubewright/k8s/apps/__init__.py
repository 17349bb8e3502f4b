"""Kinds of the apps group, one module per version."""
