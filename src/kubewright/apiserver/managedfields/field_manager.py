"""The field manager: `record_update` for creates, updates and patches, `apply` for server-side apply.

`record_update` gives the fields that a write changes to its manager. `apply` merges an intent into an object: the
manager owns the fields the intent has; the fields it applied last time and not this time are removed unless another
manager owns them; and a field of another manager that the intent would change is a conflict unless forced.

Objects are whole, in the version of the request, with defaults set, as the server would return them; their status is
as the client sent it. Neither function does I/O; `verbs.field_tracking` calls them. They follow `Update`
and `Apply` of sigs.k8s.io/structured-merge-diff merge/update.go, and the chain of managers around them in
k8s.io/apimachinery/pkg/util/managedfields/internal/fieldmanager.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kubewright.api.patches import Json, json_equal
from kubewright.apiserver.managedfields import last_applied
from kubewright.apiserver.managedfields.comparison import compare
from kubewright.apiserver.managedfields.conflicts import ApplyConflict, Conflict, Owner
from kubewright.apiserver.managedfields.entries import (
    Entry,
    Owners,
    cap_update_managers,
    decode_managed_fields,
    encode_managed_fields,
    is_reset,
    validate_entries,
)
from kubewright.apiserver.managedfields.field_sets import (
    FieldSet,
    difference,
    field_set_of,
    intersection,
    paths,
    union,
)
from kubewright.apiserver.managedfields.merge import merge, remove_items
from kubewright.apiserver.managedfields.path_elements import ManagedFieldsError
from kubewright.apiserver.managedfields.reset_fields import ResetFields, filter_fields
from kubewright.apiserver.managedfields.typed_values import (
    ensure_named_fields_are_members,
    reconcile_field_set,
    to_field_set,
)
from kubewright.apiserver.managedfields.types import FieldType
from kubewright.apiserver.managedfields.validation import validate
from kubewright.apiserver.wire.status_errors import status_error

__all__ = ("Convert", "apply", "only_times_differ", "record_update")

Convert: TypeAlias = Callable[[Json, str], tuple[Json, FieldType]]
"""The object converted to another apiVersion, and its type there; raises LookupError if there is no such version."""

BEFORE_FIRST_APPLY: Final = "before-first-apply"

_STRIPPED: Final = field_set_of(
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
"""Fields that no manager owns: they identify the object or are set by the server alone (internal/stripmeta.go)."""


class _VersionConverter:
    """Converts and compares one object in the versions of its managedFields.

    The fields of an entry are paths in the version that the manager wrote in, so a write in another version can only be
    compared with them after converting the object, before and after the write, to that version.
    """

    def __init__(self, api_version: str, kind: FieldType, convert: Convert | None, reset: ResetFields) -> None:
        self.api_version = api_version
        self.kind = kind
        self.convert = convert
        self.reset = reset

    def at(self, value: Json, version: str) -> tuple[Json, FieldType]:
        """The object in a version, and its type there.

        A version that a built-in kind no longer has raises LookupError, and the callers drop its entries. For custom
        resources the whole write fails, as in kube-apiserver.
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
            raise ManagedFieldsError(f"request to convert CR to an invalid group/version: {version}") from None

    def compare(self, old: Json, new: Json, version: str) -> tuple[FieldSet, FieldSet, FieldType]:
        """The fields set and removed, in a version, without those the endpoint resets; and the type there."""
        before, kind = self.at(old, version)
        after, _ = self.at(new, version)
        fields, removed = compare(kind, before, after)
        same = version == self.api_version
        return (
            filter_fields(fields, self.reset, request_version=same),
            filter_fields(removed, self.reset, request_version=same),
            kind,
        )


def record_update(
    live: Json | None,
    new: Json,
    *,
    manager: str,
    api_version: str,
    subresource: str = "",
    time: str,
    type: FieldType,  # noqa: A002 - as in `types.type_of_kind`
    reset: ResetFields,
    convert: Convert | None = None,
) -> None:
    """Set `new["metadata"]["managedFields"]` for a create (`live` is None), an update or a patch.

    Changes `new` and nothing else. `reset` are the fields the endpoint may not own; see `reset_fields`.
    """
    metadata = new["metadata"]
    given = metadata.pop("managedFields", None)
    stored = (live["metadata"].get("managedFields") if live else None) or []
    if subresource:
        given = None  # a write to a subresource cannot change managedFields itself
    owners = _decode_owners(given, stored, api_version, type)
    if live is not None and not owners:
        return  # a client has reset managedFields: there is no tracking until the next apply
    converter = _VersionConverter(api_version, type, convert, reset)
    owner = Owner(manager or "unknown", "Update", api_version, subresource)
    try:
        owners = _update(live if live is not None else type.empty, new, owners, owner, converter, time)
    except ManagedFieldsError:
        # `UpdateNoErrors` of internal/fieldmanager.go: a write must not fail because its owners cannot be tracked.
        # Validation, which comes later, has the better error.
        return
    if owners:
        metadata["managedFields"] = encode_managed_fields(cap_update_managers(owners))


def _decode_owners(given: Json, stored: list[Mapping[str, Any]], api_version: str, kind: FieldType) -> Owners:
    """The owners before a write: by the managedFields the client sent, if they are valid, else by the stored ones."""
    if given is None or given == stored:
        return decode_managed_fields(stored)
    if is_reset(given, built_in=kind.built_in):
        return {}
    try:
        decoded = decode_managed_fields(validate_entries(given, stored))
    except ManagedFieldsError:
        return decode_managed_fields(stored)
    for owner, entry in decoded.items():
        if entry.api_version == api_version:
            fields = reconcile_field_set(entry.fields, kind)
            decoded[owner] = entry if fields is entry.fields else Entry(fields, api_version, entry.time)
    return decoded or decode_managed_fields(stored)


def _update(old: Json, new: Json, owners: Owners, owner: Owner, converter: _VersionConverter, time: str) -> Owners:
    """The owners after an update: its manager owns the fields it set, and no other manager does any more."""
    fields, removed, _ = converter.compare(old, new, owner.api_version)
    left = _remove_changed(old, new, owners, None, converter, {owner.api_version: (fields, removed, converter.kind)})
    mine = difference(fields, _STRIPPED)
    if mine:
        before = left.get(owner)
        left[owner] = Entry(union(mine, before.fields) if before else mine, owner.api_version, time)
    return left


def _remove_changed(
    old: Json,
    new: Json,
    owners: Owners,
    applier: Owner | None,
    converter: _VersionConverter,
    comparisons: dict[str, tuple[FieldSet, FieldSet, FieldType]],
) -> Owners:
    """The owners without the fields that the write set or removed; owners of no field are dropped.

    This is the forced half of `Updater.update`: a field set to another value is no longer the old owner's, and a
    removed field has no owner. `applier` keeps its entry.
    """
    left: Owners = {}
    for owner, entry in owners.items():
        if owner == applier:
            left[owner] = entry
            continue
        version = entry.api_version
        try:
            if version not in comparisons:
                comparisons[version] = converter.compare(old, new, version)
        except LookupError:
            continue  # the kind no longer has this version
        fields, removed, kind = comparisons[version]
        rest = difference(difference(_reconcile(entry, kind), fields), removed)
        if rest is entry.fields:
            left[owner] = entry
        elif rest:
            left[owner] = Entry(rest, version, entry.time)
    return left


def _reconcile(entry: Entry, kind: FieldType) -> FieldSet:
    """The fields of an entry, reconciled with the schema of now.

    The schema of a built-in kind is the one the entry was stored with; that of a CRD may have changed since.
    """
    return entry.fields if kind.built_in and entry.wire is not None else reconcile_field_set(entry.fields, kind)


def apply(
    live: Json | None,
    intent: Json,
    *,
    manager: str,
    force: bool,
    api_version: str,
    subresource: str = "",
    time: str,
    type: FieldType,  # noqa: A002 - as in `types.type_of_kind`
    reset: ResetFields,
    convert: Convert | None = None,
) -> Json:
    """The object with the intent applied and its managedFields; raises `ApplyConflict` or `StatusError`.

    Changes none of its arguments; the result shares parts with them. `live` is None if the object does not exist.
    """
    converter = _VersionConverter(api_version, type, convert, reset)
    owner = Owner(manager, "Apply", "", subresource)
    try:
        owners = _owners_before_apply(live, converter, subresource, time)
        found = validate(type, intent)
        if found:
            raise ManagedFieldsError(f"failed to create typed patch object ({_object_text(intent)}): {found}")
        try:
            result, owners = _apply(live, intent, owners, owner, converter, time, force=force)
        except ApplyConflict as conflict:
            left = last_applied.remove_last_applied_conflicts(conflict.conflicts, manager, live, api_version, type)
            if left:
                raise ApplyConflict(left) from None
            result, owners = _apply(live, intent, owners, owner, converter, time, force=True)
    except ManagedFieldsError as error:
        raise status_error(500, "", str(error)) from None
    if manager == last_applied.KUBECTL:
        result = last_applied.update_last_applied(result, intent)
    # `remove_items` leaves null where it emptied a map; the encoded ObjectMeta of kube-apiserver has no nulls.
    metadata = {name: value for name, value in result["metadata"].items() if value is not None}
    metadata.pop("managedFields", None)
    if owners:
        metadata["managedFields"] = encode_managed_fields(owners)
    return {**result, "metadata": metadata}


def _owners_before_apply(live: Json | None, converter: _VersionConverter, subresource: str, time: str) -> Owners:
    """The owners of the live object before an apply.

    If managedFields are empty, all existing fields get the manager before-first-apply (internal/skipnonapplied.go):
    else the first apply would own nothing but its own fields, and no conflict would protect the others.
    """
    owners = decode_managed_fields(live["metadata"].get("managedFields") if live else None)
    if live is None or owners:
        return owners
    before = Owner(BEFORE_FIRST_APPLY, "Update", converter.api_version, subresource)
    return _update(converter.kind.empty, live, {}, before, converter, time)


def _object_text(intent: Json) -> str:
    """An object as kube-apiserver prints it in errors; the core group is an empty group before a slash."""
    metadata = intent.get("metadata") or {}
    version = str(intent.get("apiVersion", ""))
    kind = f"{version if '/' in version else f'/{version}'}, Kind={intent.get('kind', '')}"
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {kind}"


def _apply(
    live: Json | None,
    intent: Json,
    owners: Owners,
    owner: Owner,
    converter: _VersionConverter,
    time: str,
    *,
    force: bool,
) -> tuple[Json, Owners]:
    """The object with the intent merged and pruned, and its owners: `Updater.Apply` of merge/update.go."""
    kind = converter.kind
    old: Json = live if live is not None else {}
    owners = _reconcile_owners(old, owners, converter)
    last = owners.get(owner)
    applied_set = filter_fields(to_field_set(kind, intent), converter.reset, request_version=True)
    after = {**owners, owner: Entry(applied_set, converter.api_version, last.time if last else "")}
    new = _prune(merge(kind, old, intent), after, applied_set, last, converter)
    comparisons = {converter.api_version: converter.compare(old, new, converter.api_version)}
    if not force:
        conflicts = _conflicts(old, new, after, owner, converter, comparisons)
        if conflicts:
            raise ApplyConflict(conflicts)
    after = _remove_changed(old, new, after, owner, converter, comparisons)
    mine = difference(applied_set, _STRIPPED)
    if not mine:
        del after[owner]
        return new, after
    unchanged = live is not None and json_equal(old, new)
    if unchanged and last is not None and last.fields == mine and last.api_version == converter.api_version:
        after[owner] = last
    else:
        moment = (last.time if last else "") if unchanged else time
        after[owner] = Entry(mine, converter.api_version, moment)
    return new, after


def _reconcile_owners(old: Json, owners: Owners, converter: _VersionConverter) -> Owners:
    """The owners with reconciled fields, without those of versions the kind no longer has."""
    now: Owners = {}
    for owner, entry in owners.items():
        try:
            kind = converter.at(old, entry.api_version)[1]
        except LookupError:
            continue
        fields = _reconcile(entry, kind)
        now[owner] = entry if fields is entry.fields else Entry(fields, entry.api_version, entry.time)
    return now


def _conflicts(
    old: Json,
    new: Json,
    owners: Owners,
    applying: Owner,
    converter: _VersionConverter,
    comparisons: dict[str, tuple[FieldSet, FieldSet, FieldType]],
) -> list[Conflict]:
    found: list[Conflict] = []
    for owner, entry in owners.items():
        if owner == applying:
            continue
        if entry.api_version not in comparisons:
            comparisons[entry.api_version] = converter.compare(old, new, entry.api_version)
        disputed = intersection(entry.fields, comparisons[entry.api_version][0])
        found.extend(Conflict(owner, path) for path in paths(disputed))
    return found


def _prune(
    whole: Json, owners: Owners, applied_set: FieldSet, last: Entry | None, converter: _VersionConverter
) -> Json:
    """The merged object without the fields the manager applied last time, not this time, and no other manager owns.

    `prune` of merge/update.go: remove the fields of the last intent; add back those that any manager owns, this one's
    new intent included; then add back what went with a removed parent but was not in the last intent
    (`addBackDanglingItems`). It works in the version of the last intent, since the old paths are in that version.
    """
    if last is None or not last.fields:
        return whole
    if last.api_version == converter.api_version and not difference(last.fields, applied_set):
        return whole
    try:
        whole_then, kind = converter.at(whole, last.api_version)
    except LookupError:
        return whole
    wanted = ensure_named_fields_are_members(last.fields, kind)
    left = _add_back_owned_items(
        whole_then, remove_items(kind, whole_then, wanted), last.api_version, owners, converter
    )
    try:
        left_then, _ = converter.at(left, last.api_version)
    except LookupError:
        return converter.at(whole_then, converter.api_version)[0]
    lost = difference(_field_set_with_named_fields(kind, whole_then), _field_set_with_named_fields(kind, left_then))
    return converter.at(remove_items(kind, whole_then, intersection(lost, wanted)), converter.api_version)[0]


def _field_set_with_named_fields(kind: FieldType, value: Json) -> FieldSet:
    return ensure_named_fields_are_members(to_field_set(kind, value), kind)


def _add_back_owned_items(whole: Json, left: Json, first: str, owners: Owners, converter: _VersionConverter) -> Json:
    """The pruned object with the fields added back that any manager owns, in each manager's version.

    `first` is the version of the pruned object. It comes first, since a conversion may need the fields that were
    removed (`addBackOwnedItems` of merge/update.go).
    """
    owned: dict[str, FieldSet] = {first: {}}
    for entry in owners.values():
        owned[entry.api_version] = union(owned.get(entry.api_version, {}), entry.fields)
    for version, fields in owned.items():
        try:
            whole_there, kind = converter.at(whole, version)
            left_there, _ = converter.at(left, version)
        except LookupError:
            continue
        kept = union(_field_set_with_named_fields(kind, left_there), ensure_named_fields_are_members(fields, kind))
        whole = whole_there
        left = remove_items(kind, whole, difference(_field_set_with_named_fields(kind, whole), kept))
    return left


def only_times_differ(live: Json, new: Json) -> bool:
    """Whether two objects differ only in the times of their managedFields.

    kube-apiserver skips such a write (k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager/equality.go).
    """
    before, after = live["metadata"], new["metadata"]
    one, two = before.get("managedFields") or [], after.get("managedFields") or []
    if one == two or len(one) != len(two):
        return False
    if any(_without_time(a) != _without_time(b) for a, b in zip(one, two, strict=True)):
        return False
    return json_equal(_without_managed_fields(live), _without_managed_fields(new))


def _without_time(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "time"}


def _without_managed_fields(whole: Json) -> Json:
    metadata = {name: value for name, value in whole["metadata"].items() if name != "managedFields"}
    return {**whole, "metadata": metadata}
