"""Child processes, ports, probes and lock files of a local control plane. Knows no Kubernetes component."""
