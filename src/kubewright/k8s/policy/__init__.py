"""Kinds of the policy group, one module per version."""
