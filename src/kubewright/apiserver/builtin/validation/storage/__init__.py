"""Validation of volumes, storage classes, storage drivers and devices. Not of the volumes in a pod's spec."""
