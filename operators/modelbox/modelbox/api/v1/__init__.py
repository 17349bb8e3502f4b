"""Kinds in version v1."""
