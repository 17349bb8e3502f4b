"""CustomResourceDefinitions from classes, and whether a new one may replace an old one.

The schemas themselves are made in `schema.builder`.
"""
