"""Kinds of the resource group, one module per version."""
