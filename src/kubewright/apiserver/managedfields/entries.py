"""The entries of `metadata.managedFields`: decoded, validated, capped and encoded. `field_manager` calls it.

There is one entry for each combination of manager, operation (Apply or Update), version and subresource. Stored entries
are trusted. Entries from a client are validated, and ignored as a whole if one is invalid. It follows
k8s.io/apimachinery/pkg/util/managedfields/internal/managedfields.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import msgspec

from kubewright.api.patches import Json
from kubewright.apiserver.managedfields.conflicts import Owner
from kubewright.apiserver.managedfields.field_sets import FieldSet, sort_elements, union
from kubewright.apiserver.managedfields.path_elements import ManagedFieldsError, json_text

__all__ = (
    "Entry",
    "Owners",
    "cap_update_managers",
    "decode_managed_fields",
    "encode_managed_fields",
    "is_reset",
    "validate_entries",
)

MAX_UPDATE_MANAGERS: Final = 10
OLD_UPDATES_MANAGER: Final = "ancient-changes"

_MEMBERS: Final = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")
_decode: Final = msgspec.json.Decoder(float_hook=float).decode


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """The fields of an owner and their time. `wire` is the stored entry, as long as it is unchanged."""

    fields: FieldSet
    api_version: str
    time: str
    wire: Mapping[str, Any] | None = None


Owners: TypeAlias = dict[Owner, Entry]


def decode_managed_fields(entries: Sequence[Mapping[str, Any]] | None) -> Owners:
    """The owners in the entries of a stored object."""
    found: Owners = {}
    for entry in entries or ():
        operation = entry["operation"]
        version = entry["apiVersion"]
        owner = Owner(
            entry.get("manager", ""),
            operation,
            "" if operation == "Apply" else version,
            entry.get("subresource", ""),
        )
        found[owner] = Entry(entry.get("fieldsV1") or {}, version, entry.get("time") or "", entry)
    return found


def is_reset(entries: Json, *, built_in: bool) -> bool:
    """Whether a client resets managedFields: with one empty entry or, for a built-in kind, with an empty list."""
    return entries == [{}] or (built_in and entries == [])


def validate_entries(entries: Json, known: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The entries a client sent, with canonical path elements and order. Raises ManagedFieldsError.

    Entries that are stored already are not validated again.
    """
    return [entry if entry in known else _validate_entry(entry, index) for index, entry in enumerate(entries)]


def _validate_entry(entry: Mapping[str, Any], index: int) -> Mapping[str, Any]:
    if entry.get("operation") not in ("Apply", "Update"):
        raise ManagedFieldsError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise ManagedFieldsError("apiVersion must not be empty")
    if not entry.get("fieldsType"):
        raise ManagedFieldsError(f"missing fieldsType in managed fields entry {index}")
    if entry["fieldsType"] != "FieldsV1":
        raise ManagedFieldsError(f'invalid fieldsType "{entry["fieldsType"]}" in managed fields entry {index}')
    if entry.get("fieldsV1") is None:
        raise ManagedFieldsError(f"missing fieldsV1 in managed fields entry {index}")
    whole = {**entry, "fieldsV1": sort_elements(_validate_fields(entry["fieldsV1"]))}
    return {name: whole[name] for name in _MEMBERS if whole.get(name) or name == "fieldsV1"}


def _validate_fields(node: Json) -> FieldSet:
    if node is None:
        return {}
    if not isinstance(node, dict):
        raise ManagedFieldsError("fieldsV1 must be an object at every level")
    found: FieldSet = {}
    for step, below in node.items():
        if step == ".":
            found[step] = {}
            continue
        canonical = _canonical_element(step)
        if canonical:
            found[canonical] = _validate_fields(below)
    return {} if len(found) == 1 and "." in found else found


def _canonical_element(step: str) -> str:
    """The path element as the server writes it; empty for an unknown kind, which is dropped."""
    if len(step) < 2:
        raise ManagedFieldsError("key must be 2 characters long:")
    if step[1] != ":":
        raise ManagedFieldsError(f"missing colon: {step}")
    kind, rest = step[0], step[2:]
    if kind == "f":
        return step
    try:
        if kind == "i":
            return f"i:{int(rest)}"
        if kind not in ("k", "v"):
            return ""
        value = _decode(rest)
    except (ValueError, msgspec.DecodeError):
        raise ManagedFieldsError(f"{step!r} is no path element") from None
    if kind == "k" and not isinstance(value, dict):
        raise ManagedFieldsError(f"{step!r} is no path element")
    return f"{kind}:{json_text(value)}"


def cap_update_managers(owners: Owners) -> Owners:
    """The owners with the oldest of more than ten updating managers merged into one entry for each version.

    Without a cap, a controller whose name changes with each start would grow every object it writes
    (k8s.io/apimachinery/pkg/util/managedfields/internal/capmanagers.go).
    """
    updaters = [owner for owner in owners if owner.operation == "Update"]
    excess = len(updaters) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return owners
    left = dict(owners)
    first: dict[str, Owner] = {}
    for owner in sorted(updaters, key=lambda owner: (owners[owner].time, owner.identity)):
        if excess <= 0:
            break
        entry = left[owner]
        version = entry.api_version
        if version not in first:
            first[version] = owner
            continue
        bucket = Owner(OLD_UPDATES_MANAGER, "Update", version, "")
        if bucket not in left:
            left[bucket] = left.pop(first[version])
        left[bucket] = Entry(union(entry.fields, left[bucket].fields), version, entry.time)
        # If the bucket itself is among the merged ones, this deletes it, as capmanagers.go does.
        del left[owner]
        excess -= 1
    return left


def encode_managed_fields(owners: Owners) -> list[Mapping[str, Any]]:
    """The entries for an object: sorted by operation, time, manager, version and subresource."""
    entries = [_encode_entry(owner, entry) for owner, entry in owners.items()]
    if len(entries) > 1:
        entries.sort(key=_sort_key)
    return entries


def _sort_key(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def _encode_entry(owner: Owner, entry: Entry) -> Mapping[str, Any]:
    if entry.wire is not None:
        return entry.wire
    out: dict[str, Any] = {"manager": owner.manager, "operation": owner.operation, "apiVersion": entry.api_version}
    if entry.time:
        out["time"] = entry.time
    out["fieldsType"] = "FieldsV1"
    out["fieldsV1"] = sort_elements(entry.fields)
    if owner.subresource:
        out["subresource"] = owner.subresource
    return out
