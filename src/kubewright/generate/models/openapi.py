"""Reads the OpenAPI documents of an API server for the class generator.

In: one OpenAPI v3 document per group-version, as served under `/openapi/v3`, and the aggregated discovery. Out: an
`Api` of kinds and object schemas whose fields have one of a dozen types. Inline objects, which is all a custom resource
has, get a name and become schemas of their own. A document may hold anything anywhere: what is no OpenAPI is a
DecodeError that says where. Nothing is fetched or printed here: `models.sources` loads documents, `models.modules`
makes modules.
"""

from __future__ import annotations

import enum
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, final

import msgspec

from kubewright.api.kinds import GroupVersion, GroupVersionKind
from kubewright.errors import DecodeError
from kubewright.generate.models.names import class_name, singular, unique_name
from kubewright.k8s.documents import component

__all__ = ("Api", "Documents", "Kind", "ObjectSchema", "Property", "TypeKind", "ValueType", "read_api")

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_REFERENCE: Final = "#/components/schemas/"
_GVK: Final = "x-kubernetes-group-version-kind"

_WELL_KNOWN: Final = {
    frozenset(
        ("lastTransitionTime", "message", "observedGeneration", "reason", "status", "type")
    ): f"{_META}.Condition",
    frozenset(("matchExpressions", "matchLabels")): f"{_META}.LabelSelector",
}
"""Objects that nearly every CRD repeats inline, recognised by their fields."""

_DEEPEST: Final = 60
"""How deep schemas may be nested. A CRD is seldom deeper than fifteen, and Python reads a hundred nested brackets."""

_NO_FIELD: Final = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')
"""What msgspec takes in no field's name, and what no JSON text can hold."""

_QUANTITY_PATTERN: Final = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
"""The pattern that controller-gen writes for a resource.Quantity, which has no type of its own in a CRD."""


class TypeKind(enum.Enum):
    """The kinds of types."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    BYTES = "bytes"
    TIME = "time"
    MICRO_TIME = "micro-time"
    QUANTITY = "quantity"
    INT_OR_STRING = "int-or-string"
    ANY = "any"
    LIST = "list"
    MAP = "map"
    OBJECT = "object"
    """An object schema, named by `ValueType.target`."""
    ALIAS = "alias"
    """A schema without a type of its own, such as JSON."""


@final
class ValueType(msgspec.Struct, frozen=True):
    """The type of a value."""

    kind: TypeKind
    item: ValueType | None = None
    """The type of the items of a list or the values of a map."""
    target: str = ""
    """The schema of an object or an alias."""
    nullable: bool = False
    """Set on items and values that may be null; for a field see `Property.nullable`."""


@final
class Property(msgspec.Struct, frozen=True, kw_only=True):
    """One field of an object."""

    name: str
    """In JSON."""
    type: ValueType
    description: str = ""
    required: bool = False
    nullable: bool = False
    default: Any = msgspec.UNSET
    enum: tuple[Any, ...] = ()
    format: str = ""
    extensions: Mapping[str, Any] = {}
    """Everything `x-kubernetes-...`: list type and map keys, merge key, patch strategy, validations, unions."""


@final
class ObjectSchema(msgspec.Struct, frozen=True, kw_only=True):
    """An object with named fields."""

    name: str
    """The component's name, such as `io.k8s.api.apps.v1.Deployment`; unique within an `Api`."""
    description: str = ""
    properties: tuple[Property, ...] = ()
    kinds: tuple[GroupVersionKind, ...] = ()
    extensions: Mapping[str, Any] = {}

    def find(self, name: str) -> Property | None:
        """The field with that JSON name."""
        return next((one for one in self.properties if one.name == name), None)


@final
class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A schema that is served as a resource, or as a subresource with a kind of its own."""

    gvk: GroupVersionKind
    schema: str
    plural: str = ""
    """Empty for a kind that is a subresource only."""
    singular: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    scale: tuple[str, ...] = ()
    """The paths of the desired replicas, the actual replicas, and maybe the selector."""
    storage: bool = True
    deprecated: str | bool = False


@final
class Documents(msgspec.Struct, frozen=True, kw_only=True):
    """The input: what a server publishes about itself."""

    documents: Mapping[str, Mapping[str, Any]]
    """Group-version, such as `apps/v1` or `v1`, to its OpenAPI document."""
    discovery: Sequence[Mapping[str, Any]] = ()
    """The items of aggregated discovery, core group first; without it plural names and scopes come from the paths."""
    kinds: Sequence[Kind] = ()
    """Given explicitly where there is no discovery: a CRD names its own."""
    version: str = ""
    """The server's version, for the head of the generated files."""


@final
class Api(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in the documents that a class can express."""

    kinds: Mapping[str, Kind]
    """By the name of their schema."""
    schemas: Mapping[str, ObjectSchema]
    aliases: Mapping[str, str]
    """Schemas that allow anything, with their descriptions."""
    version: str = ""


def read_api(documents: Documents) -> Api:
    """Read the documents; an inconsistent one is a DecodeError that names the schema."""
    components: dict[str, Mapping[str, Any]] = {}
    for group_version, document in documents.documents.items():
        components.update(_components(group_version, document))
    reader = _Reader(components)
    for name in sorted(components):
        reader.read(name)
    return Api(
        kinds=_kinds(documents, reader.schemas),
        schemas=reader.schemas,
        aliases=reader.aliases,
        version=documents.version,
    )


def _components(group_version: str, document: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    components = document.get("components", {})
    schemas = components.get("schemas", {}) if isinstance(components, Mapping) else None
    if not isinstance(schemas, Mapping) or not all(
        isinstance(name, str) and isinstance(schema, Mapping) for name, schema in schemas.items()
    ):
        raise DecodeError(f"{group_version}: components.schemas is no map of schemas; pass an OpenAPI v3 document")
    return schemas


@final
class _Reader:
    """Turns component schemas into object schemas, and inline objects into schemas of their own."""

    def __init__(self, components: Mapping[str, Mapping[str, Any]]) -> None:
        self._components = components
        self._references: dict[str, ValueType | None] = {}
        """The types of components that are no objects; None for one that is being read."""
        self._depth = 0
        self.schemas: dict[str, ObjectSchema] = {}
        self.aliases: dict[str, str] = {}

    def read(self, name: str) -> None:
        schema = self._components[name]
        if name in _KNOWN_TYPES:
            if _KNOWN_TYPES[name] is TypeKind.ALIAS:
                self.aliases[name] = str(schema.get("description", ""))
        elif _is_object(schema):
            self.schemas[name] = self._object(name, schema)
        elif "type" not in schema and not _alternatives(schema):
            self.aliases[name] = str(schema.get("description", ""))

    def _object(self, name: str, schema: Mapping[str, Any]) -> ObjectSchema:
        required = _sequence(f"{name}: required", schema.get("required"))
        fields = _mapping(f"{name}: properties", schema.get("properties", {}))
        properties = tuple(
            self._property(name, wire_name, _mapping(f"{name}.{wire_name}", inner), required=wire_name in required)
            for wire_name, inner in fields.items()
        )
        return ObjectSchema(
            name=name,
            description=str(schema.get("description", "")),
            properties=properties,
            kinds=tuple(_group_version_kinds(schema)),
            extensions=_extensions(schema),
        )

    def _property(self, owner: str, name: str, schema: Mapping[str, Any], *, required: bool) -> Property:
        if _NO_FIELD.search(name):
            raise DecodeError(f"{owner}: no class can have a field {name!r}; remove quotes, backslashes and the like")
        return Property(
            name=name,
            type=self._value_type(schema, owner=owner, word=name),
            description=str(schema.get("description", "")),
            required=required,
            nullable=bool(schema.get("nullable", False)),
            default=schema.get("default", msgspec.UNSET),
            enum=tuple(_sequence(f"{owner}.{name}: enum", schema.get("enum"))),
            format=str(schema.get("format", "")),
            extensions=_extensions(schema),
        )

    def _value_type(self, schema: Mapping[str, Any], *, owner: str, word: str) -> ValueType:
        if self._depth == _DEEPEST:
            raise DecodeError(f"{owner}: schemas are nested deeper than {_DEEPEST} levels here; use references instead")
        self._depth += 1
        try:
            return self._type_of_schema(schema, owner=owner, word=word)
        finally:
            self._depth -= 1

    def _type_of_schema(self, schema: Mapping[str, Any], *, owner: str, word: str) -> ValueType:
        reference = _reference(schema)
        if reference:
            return self._type_of_reference(reference, owner)
        if _is_int_or_string(schema):
            quantity = str(schema.get("pattern", "")).startswith(_QUANTITY_PATTERN)
            return ValueType(TypeKind.QUANTITY if quantity else TypeKind.INT_OR_STRING)
        match schema.get("type"):
            case "array":
                items = _mapping(f"{owner}.{word}[]", schema.get("items", {}))
                return ValueType(TypeKind.LIST, self._item(items, owner=owner, word=singular(word)))
            case "object":
                return self._inline_object(schema, owner=owner, word=word)
            case "string":
                return ValueType(_STRING_FORMATS.get(str(schema.get("format", "")), TypeKind.STRING))
            case "integer" | "number" | "boolean" as name:
                return ValueType(TypeKind(name))
        return self._alternative(schema, owner=owner, word=word)

    def _type_of_reference(self, name: str, owner: str) -> ValueType:
        if name in _KNOWN_TYPES:
            return ValueType(_KNOWN_TYPES[name], target=name)
        schema = self._components.get(name) or component(name)
        if schema is None:
            raise DecodeError(f"{owner} refers to {name}, which is in none of the documents; add its document")
        if _is_object(schema):
            return ValueType(TypeKind.OBJECT, target=name)
        if "type" not in schema and not _alternatives(schema):
            return ValueType(TypeKind.ALIAS, target=name)
        # Once for each component: two references to one that has two references would double at each step.
        if name not in self._references:
            self._references[name] = None
            self._references[name] = self._value_type(schema, owner=owner, word=name.rpartition(".")[2])
        found = self._references[name]
        if found is None:
            raise DecodeError(f"{name} refers to itself without an object in between; correct the document")
        return found

    def _inline_object(self, schema: Mapping[str, Any], *, owner: str, word: str) -> ValueType:
        properties = schema.get("properties")
        if properties and not _is_embedded(schema):
            known = _WELL_KNOWN.get(frozenset(_mapping(f"{owner}.{word}: properties", properties)))
            return ValueType(TypeKind.OBJECT, target=known or self._hoist(schema, owner=owner, word=word))
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping) and values:
            return ValueType(TypeKind.MAP, self._item(values, owner=owner, word=singular(word)))
        return ValueType(TypeKind.MAP, ValueType(TypeKind.ANY))

    def _hoist(self, schema: Mapping[str, Any], *, owner: str, word: str) -> str:
        prefix, _, parent = owner.rpartition(".")
        name = unique_name(f"{prefix}.{class_name(parent, word)}", self._components.keys() | self.schemas.keys())
        # Reserve the name first: its own fields may need the same one.
        self.schemas[name] = ObjectSchema(name=name)
        self.schemas[name] = self._object(name, {"description": f"`{word}` of {parent}.", **schema})
        return name

    def _item(self, schema: Mapping[str, Any], *, owner: str, word: str) -> ValueType:
        value_type = self._value_type(schema, owner=owner, word=word)
        return msgspec.structs.replace(value_type, nullable=True) if schema.get("nullable") else value_type

    def _alternative(self, schema: Mapping[str, Any], *, owner: str, word: str) -> ValueType:
        """A value without a type of its own: the type that all alternatives share, or anything."""
        if schema.get("properties"):
            return self._inline_object(schema, owner=owner, word=word)
        scalars = {str(alternative.get("type")) for alternative in _alternatives(schema)}
        if len(scalars) == 1 and scalars <= {"string", "integer", "number", "boolean"}:
            return ValueType(TypeKind(scalars.pop()))
        return ValueType(TypeKind.ANY)


_STRING_FORMATS: Final = {"byte": TypeKind.BYTES, "date-time": TypeKind.TIME, "int-or-string": TypeKind.INT_OR_STRING}

_KNOWN_TYPES: Final = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": TypeKind.QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": TypeKind.INT_OR_STRING,
    f"{_META}.Time": TypeKind.TIME,
    f"{_META}.MicroTime": TypeKind.MICRO_TIME,
    # Declared as objects, but they hold any JSON.
    f"{_META}.FieldsV1": TypeKind.ALIAS,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": TypeKind.ALIAS,
}


def _is_object(schema: Mapping[str, Any]) -> bool:
    if "properties" in schema:
        return True
    return schema.get("type") == "object" and not schema.get("additionalProperties")


def _reference(schema: Mapping[str, Any]) -> str:
    """The referenced schema, if there is one: alone, or in allOf beside a description."""
    whole = _sequence("allOf", schema.get("allOf"))
    named = schema if "$ref" in schema else whole[0] if len(whole) == 1 and isinstance(whole[0], Mapping) else {}
    return str(named.get("$ref", "")).removeprefix(_REFERENCE)


def _alternatives(schema: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    both = [alternative for word in ("anyOf", "oneOf") for alternative in _sequence(word, schema.get(word))]
    return [alternative for alternative in both if isinstance(alternative, Mapping)]


def _is_int_or_string(schema: Mapping[str, Any]) -> bool:
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        return True
    return "type" not in schema and [one.get("type") for one in _alternatives(schema)] in (
        ["integer", "string"],
        ["string", "integer"],
    )


def _is_embedded(schema: Mapping[str, Any]) -> bool:
    """Whether it is a whole object of any kind; a server adds apiVersion, kind and metadata to its schema."""
    return all(schema.get(f"x-kubernetes-{name}") for name in ("embedded-resource", "preserve-unknown-fields"))


def _extensions(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name.startswith("x-kubernetes-") and name != _GVK}


def _group_version_kinds(schema: Mapping[str, Any]) -> Iterator[GroupVersionKind]:
    for gvk in _sequence(_GVK, schema.get(_GVK)):
        yield _group_version_kind(_mapping(_GVK, gvk, expected="map"))


def _group_version_kind(tree: Mapping[str, Any]) -> GroupVersionKind:
    return GroupVersionKind(_text(tree, "group"), _text(tree, "version"), _text(tree, "kind"))


def _mapping(where: str, value: Any, *, expected: str = "schema") -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        found = type(value).__name__
        raise DecodeError(f"{where}: a {expected} is expected and a {found} was found; correct the document")
    return value


def _text(tree: Mapping[str, Any], name: str) -> str:
    value = tree.get(name)
    if value is not None and not isinstance(value, str):
        raise DecodeError(f"{name}: a string is expected and a {type(value).__name__} was found; correct the document")
    return value or ""


def _texts(tree: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(_text({name: one}, name) for one in _sequence(name, tree.get(name)))


def _mappings(tree: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(_mapping(name, one, expected="map") for one in _sequence(name, tree.get(name)))


def _sequence(where: str, value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise DecodeError(f"{where}: a list is expected and a {type(value).__name__} was found; correct the document")
    return value


# Kinds --------------------------------------------------------------------------------------------------------


def _kinds(documents: Documents, schemas: Mapping[str, ObjectSchema]) -> dict[str, Kind]:
    """The schemas that are kinds: those with metadata that a resource or a subresource returns."""
    by_gvk = {schema.kinds[0]: name for name, schema in schemas.items() if len(schema.kinds) == 1}
    found: dict[str, Kind] = {}
    for kind in documents.kinds or _kinds_from_discovery(documents.discovery) or _kinds_from_paths(documents.documents):
        name = by_gvk.get(kind.gvk)
        if name is None or schemas[name].find("metadata") is None:
            continue
        known = found.get(name)
        # A kind may be both: Scale is only a subresource, Pod is also the kind of pods/resize.
        if known is None or (not known.plural and kind.plural):
            found[name] = msgspec.structs.replace(kind, schema=name)
    return found


def _kinds_from_discovery(groups: Sequence[Mapping[str, Any]]) -> list[Kind]:
    return [
        kind
        for group in groups
        for version in _mappings(_mapping("discovery", group, expected="map"), "versions")
        for resource in _mappings(version, "resources")
        for kind in _kinds_of_resource(
            GroupVersion(
                _text(_mapping("metadata", group.get("metadata") or {}, expected="map"), "name"),
                _text(version, "version"),
            ),
            resource,
        )
    ]


def _kinds_of_resource(group_version: GroupVersion, resource: Mapping[str, Any]) -> Iterator[Kind]:
    namespaced = resource.get("scope") == "Namespaced"
    subresources = _mappings(resource, "subresources")
    names = tuple(_text(one, "subresource") for one in subresources)
    yield Kind(
        gvk=_response_kind(group_version, resource),
        schema="",
        plural=_text(resource, "resource"),
        singular=_text(resource, "singularResource"),
        namespaced=namespaced,
        short_names=_texts(resource, "shortNames"),
        categories=_texts(resource, "categories"),
        subresources=names,
        # Discovery does not have the scale paths; these are the same for all built-in kinds.
        scale=("spec.replicas", "status.replicas") if "scale" in names else (),
    )
    for one in subresources:
        yield Kind(gvk=_response_kind(group_version, one), schema="", namespaced=namespaced)


def _response_kind(group_version: GroupVersion, resource: Mapping[str, Any]) -> GroupVersionKind:
    """Discovery omits group and version if they are those of the list."""
    kind = _group_version_kind(_mapping("responseKind", resource.get("responseKind") or {}, expected="map"))
    return kind if kind.version else group_version.with_kind(kind.kind)


def _kinds_from_paths(documents: Mapping[str, Mapping[str, Any]]) -> Iterator[Kind]:
    """Less than discovery: kind, plural name, scope and subresources, from the paths."""
    paths = {
        path: _mapping(f"paths: {path}", item, expected="map")
        for document in documents.values()
        for path, item in _mapping("paths", document.get("paths", {}), expected="map").items()
    }
    inside: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        collection, _, subresource = path.partition("/{name}/")
        inside[collection].append(subresource)
    for path, item in sorted(paths.items()):
        gvk = _mapping(f"paths: {path}", item.get("get") or item.get("post") or {}, expected="map").get(_GVK)
        # Skip lists over all namespaces: the paths within one namespace have more.
        if not gvk or "/watch/" in path or _within_namespace(path) in paths:
            continue
        collection, _, subresource = path.partition("/{name}")
        yield Kind(
            gvk=_group_version_kind(_mapping(_GVK, gvk, expected="map")),
            schema="",
            plural="" if subresource else collection.rpartition("/")[2],
            namespaced="/namespaces/{namespace}/" in path,
            subresources=()
            if subresource
            else tuple(sorted(name for name in inside[collection] if name and "/" not in name)),
        )


def _within_namespace(path: str) -> str:
    before, _, resource = path.rpartition("/")
    return f"{before}/namespaces/{{namespace}}/{resource}"
