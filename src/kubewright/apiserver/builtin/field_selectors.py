"""The selectable fields of built-in kinds, besides metadata.name and metadata.namespace.

`verbs.selectors` calls it for the fields of a kind and their values in an object. The errors for other fields are
kube-apiserver's, which differ from kind to kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.trees import Tree, peek

__all__ = ("field_values", "selectable_fields", "unsupported_fields")

_PLAIN: Final = ("metadata.name", "metadata.namespace")
_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

Values = dict[str, str]


def _pod(pod: Tree) -> Values:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    node = spec.get("nodeName") or ""
    return {
        "spec.nodeName": node,
        "spec.host": node,  # an old name of spec.nodeName
        "spec.restartPolicy": spec.get("restartPolicy") or "",
        "spec.schedulerName": spec.get("schedulerName") or "",
        "spec.serviceAccountName": spec.get("serviceAccountName") or "",
        "spec.hostNetwork": _word(bool(spec.get("hostNetwork"))),
        "status.phase": status.get("phase") or "",
        "status.podIP": status.get("podIP") or "",
        "status.podIPs": "",  # accepted, but kube-apiserver does not set it either
        "status.nominatedNodeName": status.get("nominatedNodeName") or "",
    }


def _event(event: Tree) -> Values:
    """The values of an Event of either group."""
    subject = event.get("involvedObject") or event.get("regarding") or {}
    reporter = event.get("reportingComponent") or event.get("reportingController") or ""
    source = peek(event, "source", "component") or peek(event, "deprecatedSource", "component") or reporter
    values = {"reason": event.get("reason") or "", "type": event.get("type") or "", "source": source}
    values["reportingComponent"] = values["reportingController"] = reporter
    for name in _REFERENCE:
        values[f"involvedObject.{name}"] = values[f"regarding.{name}"] = subject.get(name) or ""
    return values


def _at(**paths: str) -> Callable[[Tree], Values]:
    """The values at paths of the object."""
    split = {name: tuple(path.split(".")) for name, path in paths.items()}
    return lambda obj: {".".join(split[name]): _word(peek(obj, *path)) for name, path in split.items()}


def _counted(name: str, *path: str) -> Callable[[Tree], Values]:
    return lambda obj: {name: str(peek(obj, *path) or 0)}


def _word(value: Any) -> str:
    if value is True:
        return "true"
    return "" if value is None else "false" if value is False else str(value)


_EVENT_FIELDS: Final = (
    *(f"involvedObject.{name}" for name in _REFERENCE),
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_NEW_EVENT_FIELDS: Final = (*(f"regarding.{name}" for name in _REFERENCE), "reason", "reportingController", "type")

# The fields, where the values come from, and whether the namespace is one of the fields.
_KINDS: Final[Mapping[tuple[str, str], tuple[tuple[str, ...], Callable[[Tree], Values], bool]]] = {
    ("", "Pod"): (tuple(_pod({})), _pod, True),
    ("", "Node"): (
        ("spec.unschedulable",),
        lambda node: {"spec.unschedulable": _word(bool(peek(node, "spec", "unschedulable")))},
        False,
    ),
    ("", "ReplicationController"): (
        ("status.replicas",),
        _counted("status.replicas", "status", "replicas"),
        True,
    ),
    ("", "Event"): (_EVENT_FIELDS, _event, True),
    ("", "Namespace"): (("status.phase",), _at(phase="status.phase"), False),
    ("", "Secret"): (("type",), _at(type="type"), True),
    ("", "Service"): (("spec.clusterIP", "spec.type"), _at(address="spec.clusterIP", type="spec.type"), True),
    ("batch", "Job"): (("status.successful",), _counted("status.successful", "status", "succeeded"), True),
    ("certificates.k8s.io", "CertificateSigningRequest"): (("spec.signerName",), _at(signer="spec.signerName"), False),
    ("events.k8s.io", "Event"): (_NEW_EVENT_FIELDS, _event, True),
    ("resource.k8s.io", "ResourceSlice"): (
        ("spec.nodeName", "spec.driver"),
        _at(node="spec.nodeName", driver="spec.driver"),
        False,
    ),
}


def selectable_fields(gvk: GroupVersionKind) -> tuple[str, ...]:
    """The fields besides metadata.name and metadata.namespace; none for most kinds."""
    known = _KINDS.get((gvk.group, gvk.kind))
    return known[0] if known else ()


def field_values(gvk: GroupVersionKind, obj: Tree) -> Values:
    """The values of an object in these fields, as texts; an Event may be of its storage version."""
    known = _KINDS.get((gvk.group, gvk.kind))
    return known[1](obj) if known else {}


def unsupported_fields(gvk: GroupVersionKind, names: Iterable[str]) -> str:
    """kube-apiserver's error for fields that are not selectable; empty if all are."""
    known = _KINDS.get((gvk.group, gvk.kind))
    if known is None:
        plain = next((name for name in names if name not in _PLAIN), "")
        return f'"{plain}" is not a known field selector: only "metadata.name", "metadata.namespace"' if plain else ""
    allowed = {*known[0], *(_PLAIN if known[2] else _PLAIN[:1])}
    name = next((name for name in names if name not in allowed), "")
    if not name:
        return ""
    if gvk.kind == "Job":
        return f'field label "{name}" not supported for Job'
    if gvk.kind == "ResourceSlice":
        return f"field label not supported for {gvk.api_version}, Kind=ResourceSlice: {name}"
    return f"field label not supported: {name}"
