"""The Go types of the built-in kinds: structs with their fields, and named types.

The table (`go_types.json.gz`, which `source` writes) has the versioned types (`core/v1`) and the internal ones
(`core`), which error messages print: "field is immutable" shows the value of the internal type. `decoder`, `internals`
and `canonical` use it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

from kubewright.api.codec import decode_tree
from kubewright.api.kinds import GroupVersionKind

__all__ = ("GoField", "fields_of", "go_name", "kind_type", "named_type")

_GROUPS: Final = {
    "": "core",
    "admissionregistration.k8s.io": "admissionregistration",
    "apiextensions.k8s.io": "apiextensions",
    "apiregistration.k8s.io": "apiregistration",
    "authentication.k8s.io": "authentication",
    "authorization.k8s.io": "authorization",
    "certificates.k8s.io": "certificates",
    "coordination.k8s.io": "coordination",
    "discovery.k8s.io": "discovery",
    "events.k8s.io": "events",
    "flowcontrol.apiserver.k8s.io": "flowcontrol",
    "internal.apiserver.k8s.io": "apiserverinternal",
    "networking.k8s.io": "networking",
    "node.k8s.io": "node",
    "rbac.authorization.k8s.io": "rbac",
    "resource.k8s.io": "resource",
    "scheduling.k8s.io": "scheduling",
    "storage.k8s.io": "storage",
    "storagemigration.k8s.io": "storagemigration",
}


class GoField(NamedTuple):
    """One field of a struct."""

    json: str
    """Its JSON name; empty in internal types."""
    name: str
    type: str
    options: str
    within: tuple[str, ...] = ()
    """The embedded structs it is in, which are part of the path in errors of Go's decoder."""

    @property
    def omits_empty(self) -> bool:
        """Whether it has omitempty."""
        return "omitempty" in self.options

    @property
    def omits_zero(self) -> bool:
        """Whether it has omitzero, which omits structs too."""
        return "omitzero" in self.options


@cache
def _table() -> dict[str, dict[str, dict[str, Any]]]:
    file = resources.files(__package__) / "go_types.json.gz"
    table: dict[str, dict[str, dict[str, Any]]] = decode_tree(gzip.decompress(file.read_bytes()))
    return table


def kind_type(gvk: GroupVersionKind) -> str | None:
    """The Go type of a kind, such as apps/v1.Deployment; None if the table has none."""
    package = f"{_GROUPS.get(gvk.group, gvk.group)}/{gvk.version}"
    known = _table().get(package)
    return f"{package}.{gvk.kind}" if known and gvk.kind in known["structs"] else None


def fields_of(struct: str) -> tuple[GoField, ...] | None:
    """The fields of a struct, with those of embedded structs inlined; None if it is no struct."""
    package, _, word = struct.rpartition(".")
    rows = _table().get(package, {}).get("structs", {}).get(word)
    return None if rows is None else tuple(_with_embedded(rows))


def _with_embedded(rows: list[list[str]]) -> Iterator[GoField]:
    for row in rows:
        field = GoField(row[0], row[1], row[2], row[3])
        if field.options == "inline":
            for inner in fields_of(field.type.lstrip("*")) or ():
                yield inner._replace(within=(field.name, *inner.within))
        else:
            yield field


def named_type(kind: str) -> str | None:
    """The underlying type of a named type that is no struct: `string` for core/v1.Protocol."""
    package, _, word = kind.rpartition(".")
    target: str | None = _table().get(package, {}).get("named", {}).get(word)
    return "string" if kind in ("types.UID", "types.NodeName") else target


def go_name(kind: str) -> str:
    """A type as Go prints it, with the last element of its package: `[]v1.Container`."""
    if kind.startswith("*"):
        return go_name(kind[1:])
    if kind.startswith("[]"):
        return f"[]{go_name(kind[2:])}"
    if kind.startswith("map["):
        key, _, value = kind[4:].partition("]")
        return f"map[{go_name(key)}]{go_name(value)}"
    return kind.rpartition("/")[2]
