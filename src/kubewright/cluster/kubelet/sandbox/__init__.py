"""The inside of simulated containers: files, environment, and a small shell for exec."""
