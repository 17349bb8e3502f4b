"""The controllers of Endpoints, EndpointSlices and ServiceCIDRs."""
