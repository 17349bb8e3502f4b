"""The garbage collector and the namespace controller."""
