"""Objects against a structural schema: validation, defaulting and pruning, with kube-apiserver's results and messages.

The embedded API server calls it. `schema.builder` makes schemas.
"""
