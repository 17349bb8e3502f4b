"""Simulated nodes: a scheduler and a kubelet that make pods live without running anything."""
