"""Roles from declarations, from code and from audit logs. Not webhook manifests or kustomizations."""
