"""Kinds of the authorization group, one module per version."""
