"""The controllers that keep a cluster tidy: garbage, namespaces, service accounts, endpoints, disruption budgets."""
