"""Kinds in version v1alpha1."""
