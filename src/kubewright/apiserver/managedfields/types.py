"""Field types: whether a value is a scalar, a list or a map, and how it merges.

A `FieldType` is an Atom of sigs.k8s.io/structured-merge-diff schema/elements.go: it allows a scalar, a list, a map, or
several of them where a schema leaves it open; lists and maps are atomic (owned as a whole) or not (owned by member).
Types are compiled once: from the OpenAPI documents for built-in kinds (`type_of_kind`), from the structural schema of
a version for custom resources (`type_of_schema`). `UNTYPED` is the deduced type of objects without a schema: maps merge
by key, lists are atomic. The strategies of the kinds call it.

A type may contain itself: a JSON schema has properties that are JSON schemas.
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
"""Lists that Go encodes as null if they are nil: they have no omitempty."""
_UNSET_TIMES: Final = (
    *("eventTime", "firstTimestamp", "lastTimestamp"),
    *("deprecatedFirstTimestamp", "deprecatedLastTimestamp"),
)
"""Times of an Event: without omitempty, they are null if unset."""
_TEXT: Final[Mapping[str, Any]] = {"type": "string"}


@final
class MapType:
    """A map or struct: named fields, the type of all other keys (None if there are none), and whether it is atomic."""

    __slots__ = ("atomic", "deduced", "element", "fields")

    def __init__(
        self, fields: Mapping[str, FieldType], element: FieldType | None, *, atomic: bool, deduced: bool = False
    ) -> None:
        self.fields = fields
        self.element = element
        self.atomic = atomic
        self.deduced = deduced  # without a schema: `reconcile_field_set` leaves the members alone


@final
class ListType:
    """A list: atomic, a set of scalars, or with keys an associative list (x-kubernetes-list-type: map)."""

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
    """What a value may be, and how it merges."""

    __slots__ = ("built_in", "empty", "items", "leaf", "map", "scalar")

    def __init__(
        self,
        *,
        scalar: Scalar | None = None,
        items: ListType | None = None,
        map: MapType | None = None,  # noqa: A002 - as in structured-merge-diff
    ) -> None:
        self.empty: dict[str, Json] = {}
        """Of a whole kind: the zero value of the Go struct, which a create is compared with."""
        self.built_in = False
        """Of a whole kind: whether it is a built-in one, whose schema never changes."""
        self._set(scalar, items, map)

    def _set(self, scalar: Scalar | None, items: ListType | None, map_: MapType | None) -> None:
        self.scalar = scalar
        self.items = items
        self.map = map_
        self.leaf = (items is None or items.atomic) and (map_ is None or map_.atomic)
        """Whether every value is a scalar or atomic."""

    def assign(self, other: FieldType) -> None:
        """Set this type to another one; for a type that is referred to before it is compiled."""
        self._set(other.scalar, other.items, other.map)


def _untyped() -> tuple[FieldType, FieldType]:
    atomic = FieldType(scalar="untyped")
    atomic.assign(
        FieldType(scalar="untyped", items=ListType(atomic, atomic=True), map=MapType({}, atomic, atomic=True))
    )
    deduced = FieldType(scalar="untyped")
    items = ListType(atomic, atomic=True)
    deduced.assign(
        FieldType(scalar="untyped", items=items, map=MapType({}, deduced, atomic=False, deduced=True)),
    )
    return atomic, deduced


_ATOMIC, UNTYPED = _untyped()
"""Any value, atomic; and any value, with maps that merge by key."""


@cache
def type_of_kind(gvk: GroupVersionKind) -> FieldType | None:
    """The type of a built-in kind, or None if there is no such kind."""
    schema = documents.schema_of(gvk)
    if schema is None:
        return None
    compiled = FieldType()
    compiled.assign(_compile(schema, preserve_unknown=False))
    compiled.empty = _zero(schema)
    if gvk.kind == "Event":
        compiled.empty |= {name: None for name in _UNSET_TIMES if name in schema["properties"]}
    for name in _NULL_LISTS.get(gvk.kind, ()):
        compiled.empty.setdefault(name, None)
    compiled.built_in = True
    return compiled


def type_of_schema(schema: Mapping[str, Any] | None, *, preserve_unknown: bool = False) -> FieldType:
    """The type of a version of a custom resource, from its structural schema; `UNTYPED` without one."""
    if not schema:
        return UNTYPED
    whole = dict(schema)
    known = dict(whole.get("properties") or {})
    known.update(apiVersion=_TEXT, kind=_TEXT, metadata={"$ref": _REFERENCE + _META})
    whole["properties"] = known
    return _compile(whole, preserve_unknown=preserve_unknown)


@cache
def _component(name: str, map_type: str) -> FieldType:
    """The type of a component; a map type beside the $ref overrides the component's."""
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
    compiled.assign(_compile(schema, preserve_unknown=False))
    del _pending[name, map_type]
    return compiled


_pending: Final[dict[tuple[str, str], FieldType]] = {}
"""Components being compiled, for those that contain themselves."""


def _reference_name(schema: Mapping[str, Any]) -> str:
    whole: Sequence[Mapping[str, Any]] = schema.get("allOf") or ()
    named: Mapping[str, Any] = schema if "$ref" in schema else whole[0] if len(whole) == 1 else {}
    return str(named.get("$ref", "")).removeprefix(_REFERENCE)


def _inner(schema: Mapping[str, Any], *, preserve_unknown: bool) -> FieldType:
    """The type of a field, an item or a value: of the component it refers to, or of the inline schema."""
    name = _reference_name(schema)
    if name:
        return _component(name, str(schema.get("x-kubernetes-map-type", "")))
    if schema.get("x-kubernetes-embedded-resource"):
        known = dict(schema.get("properties") or {})
        known.update(apiVersion=_TEXT, kind=_TEXT, metadata={"$ref": _REFERENCE + _META})
        schema = {**schema, "properties": known}
    return _compile(schema, preserve_unknown=preserve_unknown)


def _compile(schema: Mapping[str, Any], *, preserve_unknown: bool) -> FieldType:
    preserve_unknown = preserve_unknown or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    kind = schema.get("type", "")
    if kind == "object":
        return FieldType(map=_map(schema, preserve_unknown=preserve_unknown))
    if kind == "array":
        return FieldType(items=_list(schema, preserve_unknown=preserve_unknown))
    if kind in ("integer", "number"):
        return FieldType(scalar="numeric")
    if kind == "boolean":
        return FieldType(scalar="boolean")
    if kind == "string":
        return FieldType(scalar="string" if schema.get("format", "") in ("", "byte") else "untyped")
    return FieldType(
        scalar="untyped",
        items=_list(schema, preserve_unknown=preserve_unknown),
        map=_map(schema, preserve_unknown=preserve_unknown),
    )


def _map(schema: Mapping[str, Any], *, preserve_unknown: bool) -> MapType:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    fields = {name: _inner(field, preserve_unknown=preserve_unknown) for name, field in properties.items()}
    others = schema.get("additionalProperties")
    element: FieldType | None = None
    deduced = False
    if isinstance(others, Mapping):
        element = _inner(others, preserve_unknown=preserve_unknown)
        # An inline schema of any scalar counts as no schema at all.
        deduced = not fields and element.scalar == "untyped" and not _reference_name(others)
    elif others or (others is None and (preserve_unknown or not fields)):
        element = UNTYPED
        deduced = not fields
    return MapType(fields, element, atomic=schema.get("x-kubernetes-map-type") == "atomic", deduced=deduced)


def _list(schema: Mapping[str, Any], *, preserve_unknown: bool) -> ListType:
    items = schema.get("items")
    element = _ATOMIC if items is None else _inner(items, preserve_unknown=preserve_unknown)
    atomic, keys = _list_kind(schema)
    if atomic or not keys:
        return ListType(element, atomic=atomic)
    resolved = documents.resolve(items or {})
    known: Mapping[str, Any] = resolved.get("properties") or {}
    defaults = {key: known[key]["default"] for key in keys if known.get(key, {}).get("default") is not None}
    return ListType(element, atomic=False, keys=keys, defaults=defaults)


def _list_kind(schema: Mapping[str, Any]) -> tuple[bool, Sequence[str]]:
    """Whether a list is atomic, and the keys of its items; without a list type, by its patch strategy."""
    declared = schema.get("x-kubernetes-list-type")
    if declared is not None:
        return declared == "atomic", schema.get("x-kubernetes-list-map-keys") or () if declared == "map" else ()
    if schema.get("x-kubernetes-patch-strategy") in ("merge", "merge,retainKeys"):
        key = schema.get("x-kubernetes-patch-merge-key")
        return False, (key,) if key else ()
    return True, ()


def _zero(schema: Mapping[str, Any]) -> dict[str, Json]:
    """The JSON of the zero value of a built-in kind: the fields that Go always encodes."""
    empty: dict[str, Json] = {}
    required = schema.get("required") or ()
    for name, field in (schema.get("properties") or {}).items():
        default = field.get("default")
        component = _reference_name(field)
        if component:
            inner = documents.component(component) or {}
            if default == {} and inner.get("type") == "object":
                empty[name] = _zero(inner)
        elif name in required or (default is not None and not default):
            empty[name] = default
    return empty
