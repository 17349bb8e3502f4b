"""The controllers of kube-controller-manager, written with this framework, for the embedded control plane."""
