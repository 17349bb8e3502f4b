"""What single kinds need before they are stored, beyond the rules all kinds share (`builtin.strategies`)."""
