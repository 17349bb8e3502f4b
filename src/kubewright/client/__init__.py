"""Talk to a cluster: configuration, transport, every verb of the API, watches and discovery.

Import from the modules, or the common names from `kubewright` itself: nothing is imported here, so that asking for
the configuration alone does not load the HTTP library.
"""
