"""Classes from OpenAPI documents and CRDs. The reverse, from classes to manifests, is in `generate.crds`."""
