"""Loops of the server itself: CRDs become routes, APIServices are registered, events expire, service ranges are kept.
Not kube-controller-manager's; see `cluster.controller_manager`."""
