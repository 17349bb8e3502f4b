"""Controllers inside the server: CRDs are served, APIServices registered, quotas counted, service ranges allocated, and
Events expire. Those of kube-controller-manager are in `cluster.controller_manager`."""
