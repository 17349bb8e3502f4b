"""Pure functions on volumes, claims and tolerations that the scheduler and the controller manager share."""
