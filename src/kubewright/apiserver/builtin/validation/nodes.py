"""Validates Nodes: taints, pod CIDRs, and immutable fields."""

from __future__ import annotations

from kubewright.api.field_errors import FieldError
from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    duplicate,
    each,
    forbidden,
    invalid,
    label_name_errors,
    required,
)
from kubewright.apiserver.builtin.validation.formats import cidr_errors, label_value_errors, parse_cidr
from kubewright.apiserver.builtin.validation.pods.affinity import taint_effect_errors
from kubewright.apiserver.builtin.validation.pods.resources import amount_errors

__all__ = ("node_errors", "node_update_errors")


def _taint_errors(node: JSON) -> Errors:
    errors: Errors = []
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate((node.get("spec") or {}).get("taints") or ()):
        # kube-apiserver's path is metadata, though it means spec; clients match the text.
        place = f"metadata.taints[{position}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        errors += label_name_errors(f"{place}.key", key)
        if wrong := label_value_errors(value):
            errors.append(invalid(f"{place}.value", value, ";".join(wrong)))
        errors += taint_effect_errors(f"{place}.effect", effect) if effect else [required(f"{place}.effect")]
        if (key, effect) in seen:
            shown = internal(taint, "core.Taint")
            errors.append(FieldError(place, "Duplicate", "taints must be unique by key and effect pair", shown))
        seen.add((key, effect))
    return errors


def _resource_errors(node: JSON) -> Errors:
    errors: Errors = []
    for part in ("capacity", "allocatable"):
        for name, value in ((node.get("status") or {}).get(part) or {}).items():
            errors += amount_errors(f"status.{part}.{name}", name, value)
    return errors


def node_errors(node: JSON) -> Errors:
    """ValidateNode."""
    errors = _taint_errors(node) + _resource_errors(node)
    networks = (node.get("spec") or {}).get("podCIDRs") or []
    for position, text in enumerate(networks):
        errors += each(f"spec.podCIDRs[{position}]", text, cidr_errors(text))
    if len(networks) > 1:
        families = {network.version for text in networks if (network := parse_cidr(text))}
        if len(families) != 2 or len(networks) > 2:
            detail = "may specify no more than one CIDR for each IP family"
            errors.append(invalid("spec.podCIDRs", networks, detail))
    return errors


def node_update_errors(node: JSON, old: JSON) -> Errors:
    """ValidateNodeUpdate."""
    spec, before = node.get("spec") or {}, old.get("spec") or {}
    errors = _resource_errors(node)
    seen: list[JSON] = []
    for position, address in enumerate((node.get("status") or {}).get("addresses") or ()):
        if address in seen:
            shown = internal(address, "core.NodeAddress")
            errors.append(duplicate(f"status.addresses[{position}]", shown))
        seen.append(address)
    kept, new = before.get("podCIDRs") or [], spec.get("podCIDRs") or []
    changed = 1 if len(kept) != len(new) else sum(map(str.__ne__, kept, new))
    if kept:
        detail = 'node updates may not change podCIDR except from "" to valid'
        errors += [forbidden("spec.podCIDRs", detail)] * changed
    if before.get("providerID") and before["providerID"] != spec.get("providerID"):
        detail = 'node updates may not change providerID except from "" to valid'
        errors.append(forbidden("spec.providerID", detail))
    return errors + _taint_errors(node)
