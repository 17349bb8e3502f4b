"""The OpenAPI documents of the server, v2 and v3, which `kubectl explain` and server-side apply clients read.

`endpoints` serves `/openapi/v3` and `/openapi/v2`. `builtin` has the documents of the built-in kinds, `operations` and
`schemas` make those of custom resources, and `swagger` converts all of them to the one document of v2, which `gnostic`
encodes as protobuf. `aggregated` fetches the documents of aggregated API servers; `merge` and `conversion` fit them in.
"""

from kubewright.apiserver.openapi.endpoints import OpenApi

__all__ = ("OpenApi",)
