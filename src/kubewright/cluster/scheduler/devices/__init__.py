"""The plugin DynamicResources: allocate devices to the ResourceClaims of pods."""
