"""What an Application consists of in the cluster: pure functions from the desired state to objects."""
