"""Validation of what makes, scales or protects pods: apps, batch, autoscaling, policy. Not of the pods themselves."""
