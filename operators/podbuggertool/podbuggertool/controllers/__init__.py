"""What is done about objects."""
