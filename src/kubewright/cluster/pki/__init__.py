"""Keys, certificates and their files for a local control plane."""
