"""Requests at random: `generator` makes them from a seed, `run` sends them, `minimizing` makes a failure small."""
