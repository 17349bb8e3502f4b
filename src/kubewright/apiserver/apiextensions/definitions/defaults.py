"""Defaults of a CRD (derived names, conversion None) and its preparation for create and update (status, generation).

Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go and
k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go.
"""

from __future__ import annotations

from typing import Any

__all__ = ("add_stored_version", "default_crd", "prepare_for_create", "prepare_for_update")


def default_crd(crd: dict[str, Any]) -> None:
    """Set the defaults of a CRD, which is changed."""
    spec = _struct(crd, "spec")
    names = _struct(spec, "names")
    kind = names.get("kind") or ""
    if not names.get("singular") and kind:
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    webhook = spec["conversion"].get("webhook") or {}
    service = (webhook.get("clientConfig") or {}).get("service")
    if service is not None and service.get("port") is None:
        service["port"] = 443
    if not (crd.get("status") or {}).get("storedVersions"):
        add_stored_version(crd)


def _struct(holder: dict[str, Any], name: str) -> dict[str, Any]:
    """A member that is a struct in Go, where null means an empty one."""
    found: dict[str, Any] | None = holder.get(name)
    if found is None:
        found = holder[name] = {}
    return found


def prepare_for_create(crd: dict[str, Any]) -> None:
    """Set the initial status and generation of a new CRD, which is changed."""
    crd["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}}
    crd.setdefault("metadata", {})["generation"] = 1
    add_stored_version(crd)


def prepare_for_update(crd: dict[str, Any], old: dict[str, Any]) -> None:
    """Reset the status to the stored CRD's, increase the generation, add a new stored version; `crd` is changed."""
    status = old.get("status") or {}
    crd["status"] = {**status, "storedVersions": list(status.get("storedVersions") or ())}
    generation = old["metadata"].get("generation") or 0
    crd["metadata"]["generation"] = generation + (crd.get("spec") != old.get("spec"))
    add_stored_version(crd)


def add_stored_version(crd: dict[str, Any]) -> None:
    """Add the storage version to status.storedVersions of a CRD, which is changed."""
    for version in (crd.get("spec") or {}).get("versions") or ():
        if version.get("storage"):
            # Clients in Go send an empty status with nulls.
            status = crd["status"] = crd.get("status") or {}
            stored = status["storedVersions"] = status.get("storedVersions") or []
            if version.get("name") not in stored:
                stored.append(version.get("name"))
            return
