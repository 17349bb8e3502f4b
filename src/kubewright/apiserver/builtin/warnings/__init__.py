"""The warnings about objects of built-in kinds, which the server accepts all the same."""
