"""Which cluster to talk to and with which credentials: kubeconfig, in-cluster files, tokens, exec plugins. Not
connections.
"""
