"""A local, live copy of what is watched: list once, follow the changes, answer reads from memory."""
