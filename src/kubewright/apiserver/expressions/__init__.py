"""The CEL environments of the API server: match conditions, admission policies and device selectors.

The language itself is `kubewright.cel`; the validation rules of CRDs are in `apiextensions`.
"""
