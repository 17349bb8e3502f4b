"""Classes from OpenAPI documents and CRDs. Not the reverse way from classes to manifests."""
