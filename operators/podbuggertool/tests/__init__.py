"""The tests of the operator podbuggertool."""
