"""The tests of the operator podset."""
