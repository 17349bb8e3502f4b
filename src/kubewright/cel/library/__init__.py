"""The functions of CEL in Kubernetes."""
