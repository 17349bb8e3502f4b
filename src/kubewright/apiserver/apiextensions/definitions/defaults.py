"""What the server fills in when a CRD is written: derived names, no conversion, the first stored version."""

from __future__ import annotations

from typing import Any, Final

__all__ = ("default_crd", "note_storage_version", "prepare_new", "prepare_update")

_CONDITION: Final = {"type": "", "status": "", "lastTransitionTime": None}
"""What a condition always says, be it empty."""


def default_crd(crd: dict[str, Any]) -> None:
    """Add the defaults to a CRD, which is changed."""
    spec = crd.setdefault("spec", {})
    names = spec.setdefault("names", {})
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
    status = crd.get("status") or {}
    for condition in status.get("conditions") or ():
        for name, empty in _CONDITION.items():
            condition.setdefault(name, empty)
    if not status.get("storedVersions"):
        note_storage_version(crd)


def prepare_new(crd: dict[str, Any]) -> None:
    """Give a new CRD the status and generation the server starts with; the CRD is changed."""
    crd["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}}
    crd.setdefault("metadata", {})["generation"] = 1
    note_storage_version(crd)


def prepare_update(crd: dict[str, Any], old: dict[str, Any]) -> None:
    """Keep the status of the stored CRD, count the generation, note a new storage version; `crd` is changed."""
    status = old.get("status") or {}
    crd["status"] = {**status, "storedVersions": list(status.get("storedVersions") or ())}
    generation = old["metadata"].get("generation") or 0
    crd["metadata"]["generation"] = generation + (crd.get("spec") != old.get("spec"))
    note_storage_version(crd)


def note_storage_version(crd: dict[str, Any]) -> None:
    """Add the storage version to those objects may be stored in; the CRD is changed."""
    for version in (crd.get("spec") or {}).get("versions") or ():
        if version.get("storage"):
            # Go's clients write what is empty in a status as null.
            status = crd["status"] = crd.get("status") or {}
            stored = status["storedVersions"] = status.get("storedVersions") or []
            if version.get("name") not in stored:
                stored.append(version.get("name"))
            return
