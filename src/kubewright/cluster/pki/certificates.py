"""Certificates and keys of a local control plane, made by `_base.certificates`; `pki` gives them names and places."""

from __future__ import annotations

from kubewright._base.certificates import Authority, KeyPair, service_account_keys

__all__ = ("Authority", "KeyPair", "service_account_keys")
