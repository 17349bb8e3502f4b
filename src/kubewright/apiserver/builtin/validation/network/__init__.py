"""Validation of services, endpoints, ingresses, network policies and service addresses."""
