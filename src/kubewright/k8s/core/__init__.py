"""Kinds of the core group, one module per version."""
