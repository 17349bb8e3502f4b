"""Applies a strategic merge patch: lists merge by key, and directives say what a merge patch cannot.

    patched = apply_strategic_patch(live, patch, gvk=GroupVersionKind("apps", "v1", "Deployment"))

Directives: `$patch: delete|replace`, `$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>`, `$retainKeys`.
The semantics are those of apimachinery's strategicpatch, its oddities included: kubectl relies on them. The verbs drop
unknown fields, set defaults and validate afterwards. Neither argument is changed; the result shares parts with both.
"""

from __future__ import annotations

from typing import Any, Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import Json
from kubewright.apiserver.verbs.patches.strategic_merge.lists import (
    MergeResult,
    check_order,
    element_type,
    merge_lists,
    order_elements,
)
from kubewright.apiserver.verbs.patches.strategic_merge.merge_errors import (
    LIST,
    bad_order_list,
    bad_primitive_list,
    bad_retain_keys,
    go_type,
    unknown_directive,
    wrong_type,
)
from kubewright.apiserver.verbs.patches.strategic_merge.patch_types import PatchField, PatchType, type_of_kind
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
    """The patched object; raises `StatusError` with kube-apiserver's code and words."""
    if not isinstance(patch, dict):
        if patch is None:
            return live
        found = _JSON_NAMES[go_type(patch)]
        raise bad_request(f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
    type_ = type_of_kind(gvk)
    if type_ is None:
        raise bad_request("strategic merge patch format is not supported")
    return _merge(live, patch, type_)


def _merge(live: dict[str, Json], patch: dict[str, Json], type_: PatchType) -> dict[str, Json]:
    if _DIRECTIVE in patch:
        return _apply_directive(patch)
    merged = dict(live)
    rest = dict(patch)
    if _RETAIN in rest:
        _retain(merged, rest, rest.pop(_RETAIN))
    for name in [name for name in rest if name.startswith(_ORDER)]:
        _set_element_order(merged, rest, name, type_)
    for name, value in rest.items():
        _merge_field(merged, name, value, type_)
    return merged


def _apply_directive(patch: dict[str, Json]) -> dict[str, Json]:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise unknown_directive(directive, patch)


def _retain(merged: dict[str, Json], patch: dict[str, Json], names: Json) -> None:
    """Drop the fields that `$retainKeys` does not list; the patch may set no others."""
    if not isinstance(names, list):
        raise bad_retain_keys()
    kept = {name for name in names if isinstance(name, str)}
    for name, value in patch.items():
        if value is not None and name not in kept and not name.startswith((_DELETE, _ORDER)):
            raise bad_retain_keys()
    for name in [name for name in merged if name not in kept]:
        del merged[name]


def _merge_field(merged: dict[str, Json], name: str, value: Json, type_: PatchType) -> None:
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
        member = type_.member(name)
        merged[name] = value if member.strategy == "replace" else _merge(present, value, member.type)
    elif isinstance(value, list):
        merged[name] = _merge_list(present, value, type_.member(name), deletes=deletes).items
    else:
        merged[name] = value


def _merge_list(live: list[Json], patch: list[Json], member: PatchField, *, deletes: bool = False) -> MergeResult:
    if member.strategy != "merge" and not deletes:
        return MergeResult(patch, live)
    return merge_lists(
        live,
        patch,
        key=member.merge_key,
        merge=lambda one, two: _merge(one, two, member.type),
        deletes=deletes,
        of=member.type.kind,
    )


def _set_element_order(merged: dict[str, Json], patch: dict[str, Json], directive: str, type_: PatchType) -> None:
    """Merge the list of a `$setElementOrder` in that order, and remove both from the patch."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise wrong_type(LIST, order)
    prefix, slash, name = directive.partition("/")
    if prefix != _ORDER or not slash:
        raise bad_order_list()
    live, given = merged.get(name, _NOTHING), patch.get(name, _NOTHING)
    for items in (live, given):
        if items is not _NOTHING and not isinstance(items, list):
            raise wrong_type(LIST, items)
    member = type_.member(name)
    present: list[Any] = live if isinstance(live, list) else []
    wanted: list[Any] = given if isinstance(given, list) else []
    check_order(wanted, order, member.merge_key)
    if live is _NOTHING and given is _NOTHING:
        return
    if given is _NOTHING:
        result = MergeResult(present, present)
    elif live is _NOTHING:
        result = MergeResult(_without_directives(wanted), present)
    else:
        result = _merge_list(present, wanted, member)
    kind = element_type(present, wanted)
    merged[name] = order_elements(result.items, order=order, live=result.order_before, key=member.merge_key, kind=kind)
    patch.pop(name, None)


def _put(merged: dict[str, Json], name: str, value: Json) -> None:
    kept = _without_directives(value)
    if kept is _NOTHING:
        merged.pop(name, None)
    else:
        merged[name] = kept


def _without_directives(value: Json) -> Json:
    """A new value has nothing to merge with: its parts with a directive are dropped."""
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
