"""Admission and conversion webhooks: decorators declare them, an HTTPS server answers the API server's reviews.

`kubewright.manager` runs them beside the controllers; `kubewright generate` writes their manifests.
"""
