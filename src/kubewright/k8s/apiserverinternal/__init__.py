"""Kinds of the apiserverinternal group, one module per version."""
