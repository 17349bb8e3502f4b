"""Ownership of `spec.replicas`, carried from an object to its scale and back.

Whoever scales owns one field of the object, written down with the subresource `scale`. For the time of the write
that is `spec.replicas` of a Scale, whose managed fields are made from those of the object (`of_scale`), recorded as
for any other kind, and put back (`of_parent`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from kubewright.apiserver.managedfields.entries import Entry, Owners, owners_of, written
from kubewright.apiserver.managedfields.field_sets import FieldSet, difference, field_set_of, has

__all__ = ("SCALE_API_VERSION", "ReplicasPaths", "of_parent", "of_scale")

SCALE_API_VERSION: Final = "autoscaling/v1"

ReplicasPaths: TypeAlias = Mapping[str, Sequence[str] | None]
"""Where the replicas are in each version (apiVersion) of a kind; None if that version has no scale."""

_REPLICAS: Final = ("f:spec", "f:replicas")


def of_scale(entries: Sequence[Mapping[str, Any]], paths: ReplicasPaths) -> list[Mapping[str, Any]]:
    """The managed fields of the scale of an object."""
    found: Owners = {}
    for owner, entry in owners_of(entries).items():
        path = paths.get(entry.api_version)
        if path is not None and has(entry.fields, _steps(path)):
            found[owner] = Entry(_set_of("spec", "replicas"), SCALE_API_VERSION, entry.time)
    return written(found)


def of_parent(
    entries: Sequence[Mapping[str, Any]],
    scale_entries: Sequence[Mapping[str, Any]],
    *,
    api_version: str,
    paths: ReplicasPaths,
) -> list[Mapping[str, Any]]:
    """The managed fields of an object, given what they were and those of its scale after the write."""
    parents = owners_of(entries)
    scales = owners_of(scale_entries)
    found: Owners = {}
    for owner, entry in parents.items():
        if entry.api_version not in paths:
            continue  # a version that is no more
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
    return written(found)


def _steps(path: Sequence[str]) -> list[str]:
    return [f"f:{name}" for name in path]


def _set_of(*path: str) -> FieldSet:
    return field_set_of(path)
