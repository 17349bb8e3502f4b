"""Kinds as classes, a package for each version."""
