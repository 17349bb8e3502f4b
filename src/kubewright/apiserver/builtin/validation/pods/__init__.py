"""Validation of pods and of everything a pod template holds. Not of the workloads around the template."""
