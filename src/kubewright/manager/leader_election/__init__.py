"""Leader election: of several replicas one works, and a fence stops the writes of one that may have lost the lease."""
