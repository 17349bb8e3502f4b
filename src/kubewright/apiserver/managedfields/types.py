"""How the fields of a kind merge: as one value, name by name, item by item.

A field type says what a value may be (scalar, list or map; several, where a schema leaves it open) and whether a
list or map is owned as a whole (atomic) or by its parts. Types are compiled once: from the OpenAPI documents for
built-in kinds (`type_of_kind`), from the structural schema of a version for custom ones (`type_of_schema`).
`UNTYPED` is what there is without a schema: maps by name, all else as a whole.

A type is fixed once compiled. It may contain itself: a JSON schema has properties that are JSON schemas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, final

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import Json
from kubewright.k8s import documents

__all__ = ("UNTYPED", "FieldType", "ListType", "MapType", "Scalar", "type_of_kind", "type_of_schema")

Scalar = Literal["numeric", "string", "boolean", "untyped"]

_REFERENCE: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_NULL_LISTS: Final = {"ClusterRole": ("rules",), "EndpointSlice": ("ports",), "Role": ("rules",)}
"""Optional lists that are written as null when there is none."""
_UNSET_TIMES: Final = (
    *("eventTime", "firstTimestamp", "lastTimestamp"),
    *("deprecatedFirstTimestamp", "deprecatedLastTimestamp"),
)
"""Events alone have times that are null rather than not there."""
_TEXT: Final[Mapping[str, Any]] = {"type": "string"}


@final
class MapType:
    """A map: named fields, a type for all other names (None: there are no others), and whether it is one value."""

    __slots__ = ("atomic", "deduced", "element", "fields")

    def __init__(
        self, fields: Mapping[str, FieldType], element: FieldType | None, *, atomic: bool, deduced: bool = False
    ) -> None:
        self.fields = fields
        self.element = element
        self.atomic = atomic
        self.deduced = deduced  # no named fields, and anything below: ownership in it is never migrated


@final
class ListType:
    """A list: one value, a set of scalars, or (with keys) items known by the values of their keys."""

    __slots__ = ("atomic", "defaults", "element", "keys")

    def __init__(
        self,
        element: FieldType,
        *,
        atomic: bool,
        keys: Sequence[str] = (),
        defaults: Mapping[str, Json] | None = None,
    ) -> None:
        self.element = element
        self.atomic = atomic
        self.keys = tuple(sorted(keys))
        self.defaults = defaults or {}


@final
class FieldType:
    """What a value may be, and how each of those merges."""

    __slots__ = ("built_in", "empty", "items", "leaf", "map", "scalar")

    def __init__(
        self,
        *,
        scalar: Scalar | None = None,
        items: ListType | None = None,
        map: MapType | None = None,  # noqa: A002 - the word for it
    ) -> None:
        self.empty: dict[str, Json] = {}
        """Of a whole kind: the object nobody has written to yet, which a create is compared with."""
        self.built_in = False
        """Of a whole kind: whether the server has always known it; a few things differ."""
        self._set(scalar, items, map)

    def _set(self, scalar: Scalar | None, items: ListType | None, map_: MapType | None) -> None:
        self.scalar = scalar
        self.items = items
        self.map = map_
        self.leaf = (items is None or items.atomic) and (map_ is None or map_.atomic)
        """Whether every value is owned as a whole."""

    def become(self, other: FieldType) -> None:
        """Take over what another type says; for types that were needed before they were known."""
        self._set(other.scalar, other.items, other.map)


def _untyped() -> tuple[FieldType, FieldType]:
    atomic = FieldType(scalar="untyped")
    atomic.become(
        FieldType(scalar="untyped", items=ListType(atomic, atomic=True), map=MapType({}, atomic, atomic=True))
    )
    deduced = FieldType(scalar="untyped")
    items = ListType(atomic, atomic=True)
    deduced.become(
        FieldType(scalar="untyped", items=items, map=MapType({}, deduced, atomic=False, deduced=True)),
    )
    return atomic, deduced


_ATOMIC, UNTYPED = _untyped()
"""Anything as a whole; and anything, with maps owned name by name."""


@cache
def type_of_kind(gvk: GroupVersionKind) -> FieldType | None:
    """The type of a built-in kind, or None if there is no such kind."""
    schema = documents.schema_of(gvk)
    if schema is None:
        return None
    compiled = FieldType()
    compiled.become(_compiled(schema, lax=False))
    compiled.empty = _zero(schema)
    if gvk.kind == "Event":
        compiled.empty |= {name: None for name in _UNSET_TIMES if name in schema["properties"]}
    for name in _NULL_LISTS.get(gvk.kind, ()):
        compiled.empty.setdefault(name, None)
    compiled.built_in = True
    return compiled


def type_of_schema(schema: Mapping[str, Any] | None, *, preserve_unknown: bool = False) -> FieldType:
    """The type of one version of a custom kind, from its structural schema; without one, anything goes."""
    if not schema:
        return UNTYPED
    whole = dict(schema)
    known = dict(whole.get("properties") or {})
    known.update(apiVersion=_TEXT, kind=_TEXT, metadata={"$ref": _REFERENCE + _META})
    whole["properties"] = known
    return _compiled(whole, lax=preserve_unknown)


@cache
def _component(name: str, map_type: str) -> FieldType:
    """The type of a component; what stands beside a reference may say that its map is one value."""
    if name == _QUANTITY:
        return FieldType(scalar="untyped")
    if name == _RAW:
        return _ATOMIC
    compiled = _pending.get((name, map_type))
    if compiled is not None:
        return compiled
    compiled = _pending[name, map_type] = FieldType()
    schema = dict(documents.component(name) or {})
    if map_type:
        schema["x-kubernetes-map-type"] = map_type
    compiled.become(_compiled(schema, lax=False))
    del _pending[name, map_type]
    return compiled


_pending: Final[dict[tuple[str, str], FieldType]] = {}
"""Components being compiled, for those that contain themselves."""


def _referred(schema: Mapping[str, Any]) -> str:
    whole: Sequence[Mapping[str, Any]] = schema.get("allOf") or ()
    named: Mapping[str, Any] = schema if "$ref" in schema else whole[0] if len(whole) == 1 else {}
    return str(named.get("$ref", "")).removeprefix(_REFERENCE)


def _inner(schema: Mapping[str, Any], *, lax: bool) -> FieldType:
    """The type of a field, an item or a value: of a component, or of the schema that stands there."""
    name = _referred(schema)
    if name:
        return _component(name, str(schema.get("x-kubernetes-map-type", "")))
    if schema.get("x-kubernetes-embedded-resource"):
        known = dict(schema.get("properties") or {})
        known.update(apiVersion=_TEXT, kind=_TEXT, metadata={"$ref": _REFERENCE + _META})
        schema = {**schema, "properties": known}
    return _compiled(schema, lax=lax)


def _compiled(schema: Mapping[str, Any], *, lax: bool) -> FieldType:
    lax = lax or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    kind = schema.get("type", "")
    if kind == "object":
        return FieldType(map=_map(schema, lax=lax))
    if kind == "array":
        return FieldType(items=_list(schema, lax=lax))
    if kind in ("integer", "number"):
        return FieldType(scalar="numeric")
    if kind == "boolean":
        return FieldType(scalar="boolean")
    if kind == "string":
        return FieldType(scalar="string" if schema.get("format", "") in ("", "byte") else "untyped")
    return FieldType(scalar="untyped", items=_list(schema, lax=lax), map=_map(schema, lax=lax))


def _map(schema: Mapping[str, Any], *, lax: bool) -> MapType:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    fields = {name: _inner(field, lax=lax) for name, field in properties.items()}
    others = schema.get("additionalProperties")
    element: FieldType | None = None
    deduced = False
    if isinstance(others, Mapping):
        element = _inner(others, lax=lax)
        # Where a schema was written in place, "any scalar" counts as no type at all.
        deduced = not fields and element.scalar == "untyped" and not _referred(others)
    elif others or (others is None and (lax or not fields)):
        element = UNTYPED
        deduced = not fields
    return MapType(fields, element, atomic=schema.get("x-kubernetes-map-type") == "atomic", deduced=deduced)


def _list(schema: Mapping[str, Any], *, lax: bool) -> ListType:
    items = schema.get("items")
    element = _ATOMIC if items is None else _inner(items, lax=lax)
    atomic, keys = _list_kind(schema)
    if atomic or not keys:
        return ListType(element, atomic=atomic)
    resolved = documents.resolve(items or {})
    known: Mapping[str, Any] = resolved.get("properties") or {}
    defaults = {key: known[key]["default"] for key in keys if known.get(key, {}).get("default") is not None}
    return ListType(element, atomic=False, keys=keys, defaults=defaults)


def _list_kind(schema: Mapping[str, Any]) -> tuple[bool, Sequence[str]]:
    """Whether a list is one value, and the keys of its items; without a list type, the patch strategy says."""
    declared = schema.get("x-kubernetes-list-type")
    if declared is not None:
        return declared == "atomic", schema.get("x-kubernetes-list-map-keys") or () if declared == "map" else ()
    if schema.get("x-kubernetes-patch-strategy") in ("merge", "merge,retainKeys"):
        key = schema.get("x-kubernetes-patch-merge-key")
        return False, (key,) if key else ()
    return True, ()


def _zero(schema: Mapping[str, Any]) -> dict[str, Json]:
    """The object of a built-in kind with nothing set, as the server holds it: the members that are always there."""
    empty: dict[str, Json] = {}
    required = schema.get("required") or ()
    for name, field in (schema.get("properties") or {}).items():
        default = field.get("default")
        component = _referred(field)
        if component:
            inner = documents.component(component) or {}
            if default == {} and inner.get("type") == "object":
                empty[name] = _zero(inner)
        elif name in required or (default is not None and not default):
            empty[name] = default
    return empty
