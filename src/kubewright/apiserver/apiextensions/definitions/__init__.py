"""CustomResourceDefinitions: decoding, defaults, validation and status, as functions on JSON trees.

`definition_strategy` and `controllers.crds` call them.
"""
