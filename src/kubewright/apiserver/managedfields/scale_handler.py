"""Maps the managedFields of an object to those of its Scale and back.

A manager that writes `/scale` owns the replicas field of the object, in an entry with the subresource `scale`. During
the write it owns `spec.replicas` of the Scale: `to_subresource` makes the managedFields of the Scale from those of the
object, the field manager updates them, and `to_parent` maps them back. It follows
k8s.io/apimachinery/pkg/util/managedfields/scalehandler.go. No verb calls it yet: `verbs.scale` writes the object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from kubewright.apiserver.managedfields.entries import Entry, Owners, decode_managed_fields, encode_managed_fields
from kubewright.apiserver.managedfields.field_sets import FieldSet, difference, field_set_of, has

__all__ = ("SCALE_API_VERSION", "ReplicasPaths", "to_parent", "to_subresource")

SCALE_API_VERSION: Final = "autoscaling/v1"

ReplicasPaths: TypeAlias = Mapping[str, Sequence[str] | None]
"""The path of the replicas in each apiVersion of a kind; None if that version has no scale."""

_REPLICAS: Final = ("f:spec", "f:replicas")


def to_subresource(entries: Sequence[Mapping[str, Any]], paths: ReplicasPaths) -> list[Mapping[str, Any]]:
    """The managedFields of the Scale, from those of the object."""
    found: Owners = {}
    for owner, entry in decode_managed_fields(entries).items():
        path = paths.get(entry.api_version)
        if path is not None and has(entry.fields, _steps(path)):
            found[owner] = Entry(_set_of("spec", "replicas"), SCALE_API_VERSION, entry.time)
    return encode_managed_fields(found)


def to_parent(
    entries: Sequence[Mapping[str, Any]],
    scale_entries: Sequence[Mapping[str, Any]],
    *,
    api_version: str,
    paths: ReplicasPaths,
) -> list[Mapping[str, Any]]:
    """The managedFields of the object, from the old ones and those of the Scale after the write."""
    parents = decode_managed_fields(entries)
    scales = decode_managed_fields(scale_entries)
    found: Owners = {}
    for owner, entry in parents.items():
        if entry.api_version not in paths:
            continue  # the kind no longer has this version
        path = paths[entry.api_version]
        if path is None or not has(entry.fields, _steps(path)):
            found[owner] = entry
        elif owner in scales:
            found[owner] = entry
            del scales[owner]
        else:
            rest = difference(entry.fields, _set_of(*path))
            if rest:
                found[owner] = Entry(rest, entry.api_version, entry.time)
    here = paths.get(api_version)
    for owner, entry in scales.items():
        if here is not None and has(entry.fields, _REPLICAS):
            since = parents[owner].time if owner in parents else ""
            found[owner] = Entry(_set_of(*here), api_version, since)
    return encode_managed_fields(found)


def _steps(path: Sequence[str]) -> list[str]:
    return [f"f:{name}" for name in path]


def _set_of(*path: str) -> FieldSet:
    return field_set_of(path)
