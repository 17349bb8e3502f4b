"""Record who wrote which field, and apply what a manager wants (server-side apply).

`record_update` is for every write that is not an apply: the fields it changes become the writer's. `apply` merges
an intent into an object: what the manager names becomes its own, what it named before and no longer does is
removed unless somebody else owns it, and what others own and would change is a conflict unless forced.

Objects are whole, in the version of the request, with the defaults of their kind filled in, as the server would
answer with them; their status is as the client sent it. Storing and validating them is for others, as is the check
of what a client may say in an apply. Neither function does I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kubewright.api.patches import Json, json_equal
from kubewright.apiserver.managedfields import last_applied
from kubewright.apiserver.managedfields.comparison import changes
from kubewright.apiserver.managedfields.conflicts import ApplyConflict, Conflict, Owner
from kubewright.apiserver.managedfields.entries import Entry, Owners, capped, checked, clears, owners_of, written
from kubewright.apiserver.managedfields.field_sets import (
    FieldSet,
    difference,
    field_set_of,
    intersection,
    paths,
    union,
)
from kubewright.apiserver.managedfields.merge import merged, without
from kubewright.apiserver.managedfields.path_elements import Misfit
from kubewright.apiserver.managedfields.reset_fields import Reset, ownable
from kubewright.apiserver.managedfields.typed_values import claim, reconciled, with_named_fields
from kubewright.apiserver.managedfields.types import FieldType
from kubewright.apiserver.managedfields.validation import misfits
from kubewright.apiserver.wire.status_errors import status_error

__all__ = ("Convert", "apply", "only_times_differ", "record_update")

Convert: TypeAlias = Callable[[Json, str], tuple[Json, FieldType]]
"""The object in another version (an apiVersion), and its type there; a LookupError if there is no such version."""

BEFORE_FIRST_APPLY: Final = "before-first-apply"

_UNOWNED: Final = field_set_of(
    ("apiVersion",),
    ("kind",),
    ("metadata",),
    *(
        ("metadata", name)
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
)
"""What names an object or is the server's own, and nobody's."""


class _Versions:
    """One object before and after a write, in every version somebody owns fields in."""

    def __init__(self, api_version: str, kind: FieldType, convert: Convert | None, reset: Reset) -> None:
        self.api_version = api_version
        self.kind = kind
        self.convert = convert
        self.reset = reset

    def at(self, value: Json, version: str) -> tuple[Json, FieldType]:
        """The object in a version, and its type there.

        A version a built-in kind had once is a LookupError, and its entries vanish. For custom kinds the real server
        fails instead.
        """
        if version == self.api_version and value.get("apiVersion", version) == version:
            return value, self.kind
        try:
            if self.convert is None:
                raise LookupError(version)
            return self.convert(value, version)
        except LookupError:
            if self.kind.built_in:
                raise
            raise Misfit(f"request to convert CR to an invalid group/version: {version}") from None

    def changes(self, old: Json, new: Json, version: str) -> tuple[FieldSet, FieldSet, FieldType]:
        """What is set and what is gone, in a version, but for what the endpoint may not own."""
        before, kind = self.at(old, version)
        after, _ = self.at(new, version)
        fields, gone = changes(kind, before, after)
        spoken = version == self.api_version
        return ownable(fields, self.reset, spoken=spoken), ownable(gone, self.reset, spoken=spoken), kind


def record_update(
    live: Json | None,
    new: Json,
    *,
    manager: str,
    api_version: str,
    subresource: str = "",
    time: str,
    type: FieldType,  # noqa: A002 - the word for it
    reset: Reset,
    convert: Convert | None = None,
) -> None:
    """Set `new["metadata"]["managedFields"]` for a create (`live` is None), an update or a patch.

    Changes `new` and nothing else. `reset` is what the endpoint may not own; see `resets`.
    """
    metadata = new["metadata"]
    given = metadata.pop("managedFields", None)
    stored = (live["metadata"].get("managedFields") if live else None) or []
    if subresource:
        given = None  # through a subresource nobody may say who owns what
    owners = _owners_before(given, stored, api_version, type)
    if live is not None and not owners:
        return  # nobody is tracked here, on somebody's wish
    versions = _Versions(api_version, type, convert, reset)
    owner = Owner(manager or "unknown", "Update", api_version, subresource)
    try:
        owners = _updated(live if live is not None else type.empty, new, owners, owner, versions, time)
    except Misfit:
        return  # as the real server: what cannot be tracked is not; the validation to come will refuse it
    if owners:
        metadata["managedFields"] = written(capped(owners))


def _owners_before(given: Json, stored: list[Mapping[str, Any]], api_version: str, kind: FieldType) -> Owners:
    """Who owned what before: what the client says of it, if that makes sense, and else what is stored."""
    if given is None or given == stored:
        return owners_of(stored)
    if clears(given, built_in=kind.built_in):
        return {}
    try:
        said = owners_of(checked(given, stored))
    except Misfit:
        return owners_of(stored)
    for owner, entry in said.items():
        if entry.api_version == api_version:
            fields = reconciled(entry.fields, kind)
            said[owner] = entry if fields is entry.fields else Entry(fields, api_version, entry.time)
    return said or owners_of(stored)


def _updated(old: Json, new: Json, owners: Owners, owner: Owner, versions: _Versions, time: str) -> Owners:
    """The owners after a write: its writer owns what it set, and nobody else does any more."""
    fields, gone, _ = versions.changes(old, new, owner.api_version)
    left = _bereft(old, new, owners, None, versions, {owner.api_version: (fields, gone, versions.kind)})
    mine = difference(fields, _UNOWNED)
    if mine:
        before = left.get(owner)
        left[owner] = Entry(union(mine, before.fields) if before else mine, owner.api_version, time)
    return left


def _bereft(
    old: Json,
    new: Json,
    owners: Owners,
    spared: Owner | None,
    versions: _Versions,
    known: dict[str, tuple[FieldSet, FieldSet, FieldType]],
) -> Owners:
    """The owners without what was set by another and what is gone; those with nothing left are no owners."""
    left: Owners = {}
    for owner, entry in owners.items():
        if owner == spared:
            left[owner] = entry
            continue
        version = entry.api_version
        try:
            if version not in known:
                known[version] = versions.changes(old, new, version)
        except LookupError:
            continue  # a version that is no more
        fields, gone, kind = known[version]
        rest = difference(difference(_by_today(entry, kind), fields), gone)
        if rest is entry.fields:
            left[owner] = entry
        elif rest:
            left[owner] = Entry(rest, version, entry.time)
    return left


def _by_today(entry: Entry, kind: FieldType) -> FieldSet:
    """The fields of an entry by the type of today; that of a built-in kind was the same when it was stored."""
    return entry.fields if kind.built_in and entry.wire is not None else reconciled(entry.fields, kind)


def apply(
    live: Json | None,
    intent: Json,
    *,
    manager: str,
    force: bool,
    api_version: str,
    subresource: str = "",
    time: str,
    type: FieldType,  # noqa: A002 - the word for it
    reset: Reset,
    convert: Convert | None = None,
) -> Json:
    """The object as the manager wants it, with its managedFields; raises `ApplyConflict` or `Refused`.

    Changes none of its arguments; the result shares parts with them. `live` is None if there is no such object.
    """
    versions = _Versions(api_version, type, convert, reset)
    owner = Owner(manager, "Apply", "", subresource)
    try:
        owners = _tracked(live, versions, subresource, time)
        found = misfits(type, intent)
        if found:
            raise Misfit(f"failed to create typed patch object ({_described(intent)}): {found}")
        try:
            result, owners = _applied(live, intent, owners, owner, versions, time, force=force)
        except ApplyConflict as conflict:
            left = last_applied.remaining(conflict.conflicts, manager, live, api_version, type)
            if left:
                raise ApplyConflict(left) from None
            result, owners = _applied(live, intent, owners, owner, versions, time, force=True)
    except Misfit as misfit:
        raise status_error(500, "", str(misfit)) from None
    if manager == last_applied.KUBECTL:
        result = last_applied.synchronized(result, intent)
    # Of metadata nothing is null: what nothing is left of is not there.
    metadata = {name: value for name, value in result["metadata"].items() if value is not None}
    metadata.pop("managedFields", None)
    if owners:
        metadata["managedFields"] = written(owners)
    return {**result, "metadata": metadata}


def _tracked(live: Json | None, versions: _Versions, subresource: str, time: str) -> Owners:
    """Who owns what; if nobody is tracked, all there is belongs to the time before."""
    owners = owners_of(live["metadata"].get("managedFields") if live else None)
    if live is None or owners:
        return owners
    before = Owner(BEFORE_FIRST_APPLY, "Update", versions.api_version, subresource)
    return _updated(versions.kind.empty, live, {}, before, versions, time)


def _described(intent: Json) -> str:
    """An object as the real server names it in errors; the version of the core group has an empty group before it."""
    metadata = intent.get("metadata") or {}
    version = str(intent.get("apiVersion", ""))
    kind = f"{version if '/' in version else f'/{version}'}, Kind={intent.get('kind', '')}"
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {kind}"


def _applied(
    live: Json | None, intent: Json, owners: Owners, owner: Owner, versions: _Versions, time: str, *, force: bool
) -> tuple[Json, Owners]:
    """The object with the intent in it, and its owners then."""
    kind = versions.kind
    old: Json = live if live is not None else {}
    owners = _of_today(old, owners, versions)
    last = owners.get(owner)
    claimed = ownable(claim(kind, intent), versions.reset, spoken=True)
    after = {**owners, owner: Entry(claimed, versions.api_version, last.time if last else "")}
    new = _pruned(merged(kind, old, intent), after, claimed, last, versions)
    known = {versions.api_version: versions.changes(old, new, versions.api_version)}
    if not force:
        conflicts = _conflicts(old, new, after, owner, versions, known)
        if conflicts:
            raise ApplyConflict(conflicts)
    after = _bereft(old, new, after, owner, versions, known)
    mine = difference(claimed, _UNOWNED)
    if not mine:
        del after[owner]
        return new, after
    unchanged = live is not None and json_equal(old, new)
    if unchanged and last is not None and last.fields == mine and last.api_version == versions.api_version:
        after[owner] = last
    else:
        moment = (last.time if last else "") if unchanged else time
        after[owner] = Entry(mine, versions.api_version, moment)
    return new, after


def _of_today(old: Json, owners: Owners, versions: _Versions) -> Owners:
    """The owners by the types of today, without those of versions that are no more."""
    now: Owners = {}
    for owner, entry in owners.items():
        try:
            kind = versions.at(old, entry.api_version)[1]
        except LookupError:
            continue
        fields = _by_today(entry, kind)
        now[owner] = entry if fields is entry.fields else Entry(fields, entry.api_version, entry.time)
    return now


def _conflicts(
    old: Json,
    new: Json,
    owners: Owners,
    applying: Owner,
    versions: _Versions,
    known: dict[str, tuple[FieldSet, FieldSet, FieldType]],
) -> list[Conflict]:
    found: list[Conflict] = []
    for owner, entry in owners.items():
        if owner == applying:
            continue
        if entry.api_version not in known:
            known[entry.api_version] = versions.changes(old, new, entry.api_version)
        disputed = intersection(entry.fields, known[entry.api_version][0])
        found.extend(Conflict(owner, path) for path in paths(disputed))
    return found


def _pruned(whole: Json, owners: Owners, claimed: FieldSet, last: Entry | None, versions: _Versions) -> Json:
    """The merged object without what the manager wanted before, wants no more, and nobody else owns."""
    if last is None or not last.fields:
        return whole
    if last.api_version == versions.api_version and not difference(last.fields, claimed):
        return whole
    try:
        whole_then, kind = versions.at(whole, last.api_version)
    except LookupError:
        return whole
    wanted = with_named_fields(last.fields, kind)
    left = _with_owned(whole_then, without(kind, whole_then, wanted), last.api_version, owners, versions)
    try:
        left_then, _ = versions.at(left, last.api_version)
    except LookupError:
        return versions.at(whole_then, versions.api_version)[0]
    lost = difference(_named_claim(kind, whole_then), _named_claim(kind, left_then))
    return versions.at(without(kind, whole_then, intersection(lost, wanted)), versions.api_version)[0]


def _named_claim(kind: FieldType, value: Json) -> FieldSet:
    return with_named_fields(claim(kind, value), kind)


def _with_owned(whole: Json, left: Json, first: str, owners: Owners, versions: _Versions) -> Json:
    """What is left of an object, and everything anybody owns of it."""
    owned: dict[str, FieldSet] = {first: {}}
    for entry in owners.values():
        owned[entry.api_version] = union(owned.get(entry.api_version, {}), entry.fields)
    for version, fields in owned.items():
        try:
            whole_there, kind = versions.at(whole, version)
            left_there, _ = versions.at(left, version)
        except LookupError:
            continue
        kept = union(_named_claim(kind, left_there), with_named_fields(fields, kind))
        whole = whole_there
        left = without(kind, whole, difference(_named_claim(kind, whole), kept))
    return left


def only_times_differ(live: Json, new: Json) -> bool:
    """Whether a write would change nothing but times of managed fields, so that it need not be made."""
    before, after = live["metadata"], new["metadata"]
    one, two = before.get("managedFields") or [], after.get("managedFields") or []
    if len(one) != len(two) or any(_timeless(a) != _timeless(b) for a, b in zip(one, two, strict=True)):
        return False
    return json_equal(_unmanaged(live), _unmanaged(new))


def _timeless(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "time"}


def _unmanaged(whole: Json) -> Json:
    metadata = {name: value for name, value in whole["metadata"].items() if name != "managedFields"}
    return {**whole, "metadata": metadata}
