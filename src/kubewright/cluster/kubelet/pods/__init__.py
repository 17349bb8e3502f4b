"""The lifecycle and status of one simulated pod, computed from its spec and the time. No I/O."""
