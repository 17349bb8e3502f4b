"""The operator podbuggertool."""
