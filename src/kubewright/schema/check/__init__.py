"""Objects against a structural schema: validation, defaulting, pruning, in kube-apiserver's words. Not how a schema is
made; see `schema.builder`."""
