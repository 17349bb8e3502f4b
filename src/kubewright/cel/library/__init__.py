"""The functions of CEL as Kubernetes 1.35 offers them."""
