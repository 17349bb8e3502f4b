"""Kinds of the coordination group, one module per version."""
