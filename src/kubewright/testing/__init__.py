"""Tools for testing operators, and for testing Kubewright itself."""
