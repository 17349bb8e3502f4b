"""Apply a strategic merge patch: lists merge by key, and directives say what a plain merge cannot.

    patched = apply_strategic_patch(live, patch, gvk=GroupVersionKind("apps", "v1", "Deployment"))

Directives: `$patch: delete|replace`, `$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>`, `$retainKeys`.
The semantics, their oddities included, are those of the real server, which kubectl relies on. Defaulting, validation
and the question whether fields exist come afterwards and are not done here. Neither argument is changed; the result
shares the parts that stayed the same.
"""

from __future__ import annotations

from typing import Any, Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import Json
from kubewright.apiserver.verbs.patches.strategic_merge.lists import (
    Merged,
    blend,
    check_order,
    element_type,
    merge_lists,
)
from kubewright.apiserver.verbs.patches.strategic_merge.places import Member, Place, place_of_kind
from kubewright.apiserver.verbs.patches.strategic_merge.wording import (
    LIST,
    bad_order_list,
    bad_primitive_list,
    bad_retain_keys,
    go_type,
    unknown_directive,
    wrong_type,
)
from kubewright.apiserver.wire.status_errors import bad_request

__all__ = ("apply_strategic_patch",)

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE: Final = "$deleteFromPrimitiveList"
_ORDER: Final = "$setElementOrder"
_JSON_NAMES: Final = {
    "[]interface {}": "array",
    "string": "string",
    "bool": "bool",
    "int64": "number",
    "float64": "number",
}
_NOTHING: Final = object()


def apply_strategic_patch(live: Json, patch: Json, *, gvk: GroupVersionKind) -> Json:
    """The object as the patch wants it; raises Refused with the real server's code and words."""
    if not isinstance(patch, dict):
        if patch is None:
            return live
        found = _JSON_NAMES[go_type(patch)]
        raise bad_request(f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
    place = place_of_kind(gvk)
    if place is None:
        raise bad_request("strategic merge patch format is not supported")
    return _merge(live, patch, place)


def _merge(live: dict[str, Json], patch: dict[str, Json], place: Place) -> dict[str, Json]:
    if _DIRECTIVE in patch:
        return _directed(patch)
    merged = dict(live)
    rest = dict(patch)
    if _RETAIN in rest:
        _retain(merged, rest, rest.pop(_RETAIN))
    for name in [name for name in rest if name.startswith(_ORDER)]:
        _put_in_order(merged, rest, name, place)
    for name, value in rest.items():
        _merge_field(merged, name, value, place)
    return merged


def _directed(patch: dict[str, Json]) -> dict[str, Json]:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise unknown_directive(directive, patch)


def _retain(merged: dict[str, Json], patch: dict[str, Json], names: Json) -> None:
    """Drop what the list does not name; the patch may set nothing else."""
    if not isinstance(names, list):
        raise bad_retain_keys()
    kept = {name for name in names if isinstance(name, str)}
    for name, value in patch.items():
        if value is not None and name not in kept and not name.startswith((_DELETE, _ORDER)):
            raise bad_retain_keys()
    for name in [name for name in merged if name not in kept]:
        del merged[name]


def _merge_field(merged: dict[str, Json], name: str, value: Json, place: Place) -> None:
    deletes = name.startswith(_DELETE)
    if deletes:
        prefix, slash, name = name.partition("/")
        if prefix != _DELETE or not slash:
            raise bad_primitive_list()
    if value is None:
        merged.pop(name, None)
        return
    present = merged.get(name, _NOTHING)
    if present is _NOTHING or go_type(present) != go_type(value):
        if not deletes:
            _put(merged, name, _without_nulls(value))
    elif isinstance(value, dict):
        member = place.member(name)
        merged[name] = value if member.strategy == "replace" else _merge(present, value, member.inside)
    elif isinstance(value, list):
        merged[name] = _merge_list(present, value, place.member(name), deletes=deletes).items
    else:
        merged[name] = value


def _merge_list(live: list[Json], patch: list[Json], member: Member, *, deletes: bool = False) -> Merged:
    if member.strategy != "merge" and not deletes:
        return Merged(patch, live)
    return merge_lists(
        live,
        patch,
        key=member.merge_key,
        merge=lambda one, two: _merge(one, two, member.inside),
        deletes=deletes,
        of=member.inside.kind,
    )


def _put_in_order(merged: dict[str, Json], patch: dict[str, Json], directive: str, place: Place) -> None:
    """Merge the list a `$setElementOrder` is about, in the order it asks for, and take both out of the patch."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise wrong_type(LIST, order)
    prefix, slash, name = directive.partition("/")
    if prefix != _ORDER or not slash:
        raise bad_order_list()
    live, asked = merged.get(name, _NOTHING), patch.get(name, _NOTHING)
    for items in (live, asked):
        if items is not _NOTHING and not isinstance(items, list):
            raise wrong_type(LIST, items)
    member = place.member(name)
    present: list[Any] = live if isinstance(live, list) else []
    wanted: list[Any] = asked if isinstance(asked, list) else []
    check_order(wanted, order, member.merge_key)
    if live is _NOTHING and asked is _NOTHING:
        return
    if asked is _NOTHING:
        result = Merged(present, present)
    elif live is _NOTHING:
        result = Merged(_without_directives(wanted), present)
    else:
        result = _merge_list(present, wanted, member)
    kind = element_type(present, wanted)
    merged[name] = blend(result.items, asked=order, live=result.standing, key=member.merge_key, kind=kind)
    patch.pop(name, None)


def _put(merged: dict[str, Json], name: str, value: Json) -> None:
    kept = _without_directives(value)
    if kept is _NOTHING:
        merged.pop(name, None)
    else:
        merged[name] = kept


def _without_directives(value: Json) -> Json:
    """What is new has nothing to be merged with: parts with a directive are left out."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return _NOTHING
        parts = ((name, _without_directives(part)) for name, part in value.items())
        return {name: part for name, part in parts if part is not _NOTHING}
    if isinstance(value, list):
        return [part for part in map(_without_directives, value) if part is not _NOTHING]
    return value


def _without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value
