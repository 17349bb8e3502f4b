"""Garbage collection and the end of namespaces."""
