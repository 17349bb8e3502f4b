"""The operator sidecarset."""
