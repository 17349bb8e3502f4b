"""Validates Services, Endpoints, EndpointSlices, Ingresses, NetworkPolicies, ServiceCIDRs and IPAddresses."""
