"""Endpoints, EndpointSlices and ServiceCIDRs."""
