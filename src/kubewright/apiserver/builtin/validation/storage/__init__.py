"""Validates PersistentVolumes, storage classes, storage drivers and resource claims; not the volumes of pods."""
