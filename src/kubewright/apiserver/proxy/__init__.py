"""Requests that another server handles: aggregated API servers, kubelets, pods and services.

The connections are made by `outbound`.
"""
