"""Child processes, ports and lock files of a local control plane. Not what the processes are."""
