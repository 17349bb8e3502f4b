"""Be a cluster: an embedded Kubernetes API server."""
