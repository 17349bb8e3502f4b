"""The client of a cluster: configuration, transport, every verb of the API, watches and discovery.

Import from the modules, or the common names from `kubewright` itself: nothing is imported here, so that reading the
configuration alone does not load the HTTP library.
"""
