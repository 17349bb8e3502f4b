"""From classes to manifests, and from OpenAPI documents and CRDs to classes."""
