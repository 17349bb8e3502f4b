"""Values as Go prints the internal types, for error messages.

kube-apiserver validates the internal version of an object, whose structs have no JSON tags: fields have their Go names,
unset ones are null, and a few are in another struct than in v1. `internal(value, "core.PodTemplateSpec")` converts a
tree for an error message; `difference` is the diff in messages about immutable fields.
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
"""Fields of v1.PodSpec that are in PodSecurityContext internally."""
_VERSIONS: Final = {"autoscaling": ("autoscaling/v2", "autoscaling/v1")}


def internal(value: JSON, kind: str) -> JSON:
    """The value as JSON of the internal type."""
    return _printer(kind)(value)


def difference(old: JSON, new: JSON, kind: str) -> str:
    """A unified diff of both values as the internal type."""
    before, after = (_lines(internal(value, kind)) for value in (old, new))
    return "".join(list(unified_diff(before, after, n=3))[2:])


def _lines(value: JSON) -> list[str]:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    # Go's encoder escapes HTML characters; the indentation is the same.
    for plain, escaped in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")):
        text = text.replace(plain, escaped)
    return [f"{line}\n" for line in text.split("\n")]


@cache
def _printer(kind: str) -> Callable[[JSON], JSON]:
    if kind.startswith("*"):
        inner = _printer(kind[1:])
        return lambda value: None if value is None else inner(value)
    underlying = named_type(kind) or kind
    if underlying.startswith("[]") and underlying != "[]byte":
        item = _printer(underlying[2:])
        return lambda value: None if value is None else [item(entry) for entry in value]
    if underlying.startswith("map["):
        item = _printer(underlying.partition("]")[2])
        return lambda value: None if value is None else {key: item(value[key]) for key in sorted(value)}
    fields = fields_of(kind)
    if fields is None or kind in ("meta/v1.Time", "meta/v1.MicroTime"):
        zero = _ZEROS.get(kind, _ZEROS.get(underlying))
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
    renamed = {"DataDiskURI": "diskURI", "CephMonitors": "monitors", "RBDImage": "image"}
    return renamed.get(field.name, field.name[:1].lower() + field.name[1:])
