"""The OpenAPI documents of the server: what there is and what it looks like, for `kubectl explain` and its like.

`pages` answers `/openapi/v3` and `/openapi/v2`. `builtin` has the documents of the built-in kinds, `operations` and
`schemas` make those of custom resources, `swagger` turns all of them into one document of the older form. `elsewhere`
fetches those of extension servers; `merging` and `upgrading` make them fit.
"""

from kubewright.apiserver.openapi.endpoints import OpenApi

__all__ = ("OpenApi",)
