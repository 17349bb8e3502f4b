"""Points webhook configurations and CRDs of the cluster at this operator. Not the answers to the reviews."""
