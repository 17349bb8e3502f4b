"""The inside of a simulated container: its files, its environment and a small shell."""
