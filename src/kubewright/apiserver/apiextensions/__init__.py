"""Custom resources and CustomResourceDefinitions: strategies, validation rules, conversion, versions.

It is the library half of k8s.io/apiextensions-apiserver. `controllers.crds` adds and removes the resources.
"""
