"""The built-in kinds: decoding, defaults, conversion, preparation, validation and warnings.

It is the logic of k8s.io/kubernetes/pkg/apis and pkg/registry; `strategy` is the entry point of the verbs.
"""
