"""Facts about volumes, claims and tolerations that both the scheduler and the controller manager ask for."""
