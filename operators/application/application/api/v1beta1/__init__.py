"""Kinds in version v1beta1."""
