"""The kinds."""
