"""Where a cluster is and how to log in: kubeconfig, in-cluster files, tokens, exec plugins. Not connections."""
