"""The cache: informers that list and watch kinds, and reads from their stores."""
