"""Kinds of the autoscaling group, one module per version."""
