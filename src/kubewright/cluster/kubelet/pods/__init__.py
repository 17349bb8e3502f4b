"""The life of one pod, decided from its spec and the time. No I/O."""
