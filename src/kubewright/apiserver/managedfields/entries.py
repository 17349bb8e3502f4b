"""The entries of `metadata.managedFields`: read, checked, ordered, written, and kept from growing without end.

There is one entry for each owner: a manager, how it writes (Apply or Update), in which version and through which
subresource. What the server stored is trusted; what a client sends is checked, and refused as a whole if a part of
it makes no sense.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import msgspec

from kubewright.api.patches import Json
from kubewright.apiserver.managedfields.conflicts import Owner
from kubewright.apiserver.managedfields.field_sets import FieldSet, in_order, union
from kubewright.apiserver.managedfields.path_elements import Misfit, wire_text

__all__ = ("Entry", "Owners", "capped", "checked", "clears", "owners_of", "written")

MOST_UPDATERS: Final = 10
ANCIENT: Final = "ancient-changes"

_MEMBERS: Final = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")
_decode: Final = msgspec.json.Decoder().decode


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """What an owner owns, since when, and the entry as it is stored, for as long as nothing of it changes."""

    fields: FieldSet
    api_version: str
    time: str
    wire: Mapping[str, Any] | None = None


Owners: TypeAlias = dict[Owner, Entry]


def owners_of(entries: Sequence[Mapping[str, Any]] | None) -> Owners:
    """The entries of an object that is stored."""
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


def clears(entries: Json, *, built_in: bool) -> bool:
    """Whether a client asks to forget all owners: with one empty entry, or, in a built-in kind, with an empty list."""
    return entries == [{}] or (built_in and entries == [])


def checked(entries: Json, known: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The entries a client sent, in the form the server stores. Raises Misfit.

    Those that the server gave out before are taken as they are.
    """
    return [entry if entry in known else _checked(entry, index) for index, entry in enumerate(entries)]


def _checked(entry: Mapping[str, Any], index: int) -> Mapping[str, Any]:
    if entry.get("operation") not in ("Apply", "Update"):
        raise Misfit("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise Misfit("apiVersion must not be empty")
    if not entry.get("fieldsType"):
        raise Misfit(f"missing fieldsType in managed fields entry {index}")
    if entry["fieldsType"] != "FieldsV1":
        raise Misfit(f'invalid fieldsType "{entry["fieldsType"]}" in managed fields entry {index}')
    if entry.get("fieldsV1") is None:
        raise Misfit(f"missing fieldsV1 in managed fields entry {index}")
    whole = {**entry, "fieldsV1": in_order(_checked_fields(entry["fieldsV1"]))}
    return {name: whole[name] for name in _MEMBERS if whole.get(name) or name == "fieldsV1"}


def _checked_fields(node: Json) -> FieldSet:
    if node is None:
        return {}
    if not isinstance(node, dict):
        raise Misfit("a set of fields must be an object")
    found: FieldSet = {}
    for step, below in node.items():
        if step == ".":
            found[step] = {}
            continue
        written_as = _checked_step(step)
        if written_as:
            found[written_as] = _checked_fields(below)
    return {} if len(found) == 1 and "." in found else found


def _checked_step(step: str) -> str:
    """The step as the server writes it; empty for those of kinds it does not know, which are dropped."""
    if len(step) < 2:
        raise Misfit("key must be 2 characters long:")
    if step[1] != ":":
        raise Misfit(f"missing colon: {step}")
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
        raise Misfit(f"{step!r} is no step of a path") from None
    if kind == "k" and not isinstance(value, dict):
        raise Misfit(f"{step!r} is no step of a path")
    return f"{kind}:{wire_text(value)}"


def capped(owners: Owners) -> Owners:
    """The owners, the oldest of those that update rather than apply put together if there are too many."""
    updaters = [owner for owner in owners if owner.operation == "Update"]
    excess = len(updaters) - MOST_UPDATERS
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
        bucket = Owner(ANCIENT, "Update", version, "")
        if bucket not in left:
            left[bucket] = left.pop(first[version])
        left[bucket] = Entry(union(entry.fields, left[bucket].fields), version, entry.time)
        # If the bucket itself is not the oldest it is lost here, as it is on the real server.
        del left[owner]
        excess -= 1
    return left


def written(owners: Owners) -> list[Mapping[str, Any]]:
    """The entries as an object has them: by operation, then by age, then by name."""
    entries = [_written(owner, entry) for owner, entry in owners.items()]
    if len(entries) > 1:
        entries.sort(key=_place)
    return entries


def _place(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def _written(owner: Owner, entry: Entry) -> Mapping[str, Any]:
    if entry.wire is not None:
        return entry.wire
    out: dict[str, Any] = {"manager": owner.manager, "operation": owner.operation, "apiVersion": entry.api_version}
    if entry.time:
        out["time"] = entry.time
    out["fieldsType"] = "FieldsV1"
    out["fieldsV1"] = in_order(entry.fields)
    if owner.subresource:
        out["subresource"] = owner.subresource
    return out
