"""The operator modelbox."""
