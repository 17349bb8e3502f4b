"""Values as the real server keeps them, which is how they look in its messages.

The server validates its own form of an object: fields carry Go names, unset ones show as null, and a few sit
elsewhere than on the wire. `internal(value, "core.PodTemplateSpec")` turns a tree into that form, ready to be shown
in an error; `difference` is the diff the server puts into "is immutable" messages.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from difflib import unified_diff
from functools import cache
from typing import Any, Final, TypeAlias

from kubewright.apiserver.builtin.golang.types import GoField, fields_of, named_type

__all__ = ("difference", "internal")

JSON: TypeAlias = Any

_POD_FIELDS: Final = {
    "HostNetwork": "hostNetwork",
    "HostPID": "hostPID",
    "HostIPC": "hostIPC",
    "ShareProcessNamespace": "shareProcessNamespace",
    "HostUsers": "hostUsers",
}
"""On the wire these are fields of the pod; the server keeps them in the security context."""
_VERSIONS: Final = {"autoscaling": ("autoscaling/v2", "autoscaling/v1")}


def internal(value: JSON, kind: str) -> JSON:
    """The value as the server's own type would be printed."""
    return _printer(kind)(value)


def difference(old: JSON, new: JSON, kind: str) -> str:
    """A unified diff of both as the server prints them."""
    before, after = (_lines(internal(value, kind)) for value in (old, new))
    return "".join(list(unified_diff(before, after, n=3))[2:])


def _lines(value: JSON) -> list[str]:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    # Go prints empty lists and structs on one line too, so only the escapes differ.
    for plain, escaped in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")):
        text = text.replace(plain, escaped)
    return [f"{line}\n" for line in text.split("\n")]


@cache
def _printer(kind: str) -> Callable[[JSON], JSON]:
    if kind.startswith("*"):
        inner = _printer(kind[1:])
        return lambda value: None if value is None else inner(value)
    shape = named_type(kind) or kind
    if shape.startswith("[]") and shape != "[]byte":
        item = _printer(shape[2:])
        return lambda value: None if value is None else [item(entry) for entry in value]
    if shape.startswith("map["):
        item = _printer(shape.partition("]")[2])
        return lambda value: None if value is None else {key: item(value[key]) for key in sorted(value)}
    fields = fields_of(kind)
    if fields is None or kind in ("meta/v1.Time", "meta/v1.MicroTime"):
        zero = _ZEROS.get(kind, _ZEROS.get(shape))
        return lambda value: zero if value is None else value
    return _struct(kind, fields)


_ZEROS: Final[dict[str, JSON]] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "resource.Quantity": "0",
    "intstr.IntOrString": 0,
}


def _struct(kind: str, fields: tuple[GoField, ...]) -> Callable[[JSON], JSON]:
    rows = [(field, field.json or field.name, _wire_name(kind, field)) for field in fields]

    def print_struct(value: JSON) -> JSON:
        tree = value if value is not None else {}
        if kind == "core.PodSpec":
            tree = _with_moved_fields(tree)
        elif kind == "core.PodTemplateSpec":
            tree = {**(tree.get("metadata") or {}), "spec": tree.get("spec")}
        made: dict[str, JSON] = {}
        for field, name, wire in rows:
            found = tree.get(wire)
            if (field.omits_empty or field.omits_zero) and not found:
                continue
            made[name] = _printer(field.type)(found)
        return made

    return print_struct


def _with_moved_fields(spec: JSON) -> JSON:
    moved = {wire: spec[wire] for wire in _POD_FIELDS.values() if wire in spec}
    if not moved and "securityContext" not in spec:
        return spec
    return {**spec, "securityContext": {**(spec.get("securityContext") or {}), **moved}}


def _wire_name(kind: str, field: GoField) -> str:
    if field.json:
        return field.json
    if kind == "core.PodSecurityContext" and field.name in _POD_FIELDS:
        return _POD_FIELDS[field.name]
    package, _, word = kind.rpartition(".")
    for version in _VERSIONS.get(package, (f"{package}/v1",)):
        for other in fields_of(f"{version}.{word}") or ():
            if other.name == field.name:
                return other.json
    special = {"DataDiskURI": "diskURI", "CephMonitors": "monitors", "RBDImage": "image"}
    return special.get(field.name, field.name[:1].lower() + field.name[1:])
