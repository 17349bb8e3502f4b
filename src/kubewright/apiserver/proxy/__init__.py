"""Requests that another server answers: aggregated API servers, kubelets, pods and services. Not the connections
themselves; see `outbound`."""
