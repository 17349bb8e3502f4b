"""Kinds of the events group, one module per version."""
