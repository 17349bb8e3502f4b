"""Find, download or build etcd and the Kubernetes binaries. Does not start them; see `processes`."""
