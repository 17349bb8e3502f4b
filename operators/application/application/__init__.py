"""The operator application."""
