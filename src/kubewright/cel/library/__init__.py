"""The functions of CEL in Kubernetes 1.35."""
