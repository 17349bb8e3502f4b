"""Kinds of the storagemigration group, one module per version."""
