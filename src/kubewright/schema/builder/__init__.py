"""From a class to its structural schema: types, markers, docstrings and defaults become OpenAPI.

`kubewright.generate.crds` calls it. The check of an object against a schema is in `schema.check`.
"""
