"""Kinds of the flowcontrol group, one module per version."""
