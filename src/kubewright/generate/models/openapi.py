"""OpenAPI documents of an API server, read into what a class generator needs to know.

In: one OpenAPI v3 document per group-version, as served under `/openapi/v3`, and the aggregated discovery.
Out: an `Api` of kinds and object schemas whose fields have one of a dozen shapes. Inline objects, which is
all a custom resource has, get a name and become schemas of their own. Nothing is fetched and nothing is
printed here: `generate.models.sources` brings documents, `generate.models.modules` makes modules.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, final

import msgspec

from kubewright.api.kinds import GroupVersion, GroupVersionKind
from kubewright.errors import DecodeError
from kubewright.generate.models.names import class_name, singular, unused
from kubewright.k8s.documents import component

__all__ = ("Api", "Documents", "Form", "Kind", "ObjectSchema", "Property", "Shape", "read_api")

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_REFERENCE: Final = "#/components/schemas/"
_GVK: Final = "x-kubernetes-group-version-kind"

_WELL_KNOWN: Final = {
    frozenset(
        ("lastTransitionTime", "message", "observedGeneration", "reason", "status", "type")
    ): f"{_META}.Condition",
    frozenset(("matchExpressions", "matchLabels")): f"{_META}.LabelSelector",
}
"""Objects that nearly every CRD repeats inline, known by their fields."""

_QUANTITY_PATTERN: Final = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
"""How controller-gen writes a resource.Quantity, which has no type of its own in a CRD."""


class Form(enum.Enum):
    """What a value can be."""

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
    """An object schema, named by the shape's `target`."""
    ALIAS = "alias"
    """A schema that says nothing but its name, such as JSON."""


@final
class Shape(msgspec.Struct, frozen=True):
    """The type of a value."""

    form: Form
    item: Shape | None = None
    """Of a list or a map."""
    target: str = ""
    """The schema an object or an alias stands for."""
    nullable: bool = False
    """Set on items and values that may be null; a field says it itself."""


@final
class Property(msgspec.Struct, frozen=True, kw_only=True):
    """One field of an object."""

    name: str
    """On the wire."""
    shape: Shape
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
    """Of the component, such as `io.k8s.api.apps.v1.Deployment`; unique within an `Api`."""
    description: str = ""
    properties: tuple[Property, ...] = ()
    kinds: tuple[GroupVersionKind, ...] = ()
    extensions: Mapping[str, Any] = {}

    @property
    def class_name(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]

    def find(self, name: str) -> Property | None:
        """The field with that name on the wire."""
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
    """Paths of the wanted number, the number there is, and maybe the selector."""
    storage: bool = True
    deprecated: str | bool = False


@final
class Documents(msgspec.Struct, frozen=True, kw_only=True):
    """The input: what a server says about itself."""

    documents: Mapping[str, Mapping[str, Any]]
    """Group-version, such as `apps/v1` or `v1`, to its OpenAPI document."""
    discovery: Sequence[Mapping[str, Any]] = ()
    """The items of aggregated discovery, core group first; without it plural names and scopes come from the paths."""
    kinds: Sequence[Kind] = ()
    """Said outright, where there is no discovery to ask: a CRD is its own."""
    version: str = ""
    """Of the server, for the head of the generated files."""


@final
class Api(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the documents say that a class can show."""

    kinds: Mapping[str, Kind]
    """By the name of their schema."""
    schemas: Mapping[str, ObjectSchema]
    aliases: Mapping[str, str]
    """Schemas that allow anything, with their descriptions."""
    version: str = ""


def read_api(documents: Documents) -> Api:
    """Read the documents; one that contradicts itself is a DecodeError that names the schema."""
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
    if not isinstance(schemas, Mapping) or not all(isinstance(schema, Mapping) for schema in schemas.values()):
        raise DecodeError(f"{group_version}: components.schemas is no map of schemas; pass an OpenAPI v3 document")
    return schemas


@final
class _Reader:
    """Turns component schemas into object schemas, hoisting inline objects on the way."""

    def __init__(self, components: Mapping[str, Mapping[str, Any]]) -> None:
        self._components = components
        self.schemas: dict[str, ObjectSchema] = {}
        self.aliases: dict[str, str] = {}

    def read(self, name: str) -> None:
        schema = self._components[name]
        if name in _KNOWN_SHAPES:
            if _KNOWN_SHAPES[name] is Form.ALIAS:
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
        return Property(
            name=name,
            shape=self._shape(schema, owner=owner, word=name),
            description=str(schema.get("description", "")),
            required=required,
            nullable=bool(schema.get("nullable", False)),
            default=schema.get("default", msgspec.UNSET),
            enum=tuple(_sequence(f"{owner}.{name}: enum", schema.get("enum"))),
            format=str(schema.get("format", "")),
            extensions=_extensions(schema),
        )

    def _shape(self, schema: Mapping[str, Any], *, owner: str, word: str) -> Shape:
        reference = _reference(schema)
        if reference:
            return self._referenced(reference, owner)
        if _is_int_or_string(schema):
            quantity = str(schema.get("pattern", "")).startswith(_QUANTITY_PATTERN)
            return Shape(Form.QUANTITY if quantity else Form.INT_OR_STRING)
        match schema.get("type"):
            case "array":
                items = _mapping(f"{owner}.{word}[]", schema.get("items", {}))
                return Shape(Form.LIST, self._item(items, owner=owner, word=singular(word)))
            case "object":
                return self._inline_object(schema, owner=owner, word=word)
            case "string":
                return Shape(_STRING_FORMATS.get(str(schema.get("format", "")), Form.STRING))
            case "integer" | "number" | "boolean" as name:
                return Shape(Form(name))
        return self._alternative(schema, owner=owner, word=word)

    def _referenced(self, name: str, owner: str) -> Shape:
        if name in _KNOWN_SHAPES:
            return Shape(_KNOWN_SHAPES[name], target=name)
        schema = self._components.get(name) or component(name)
        if schema is None:
            raise DecodeError(f"{owner} refers to {name}, which is in none of the documents; add its document")
        if _is_object(schema):
            return Shape(Form.OBJECT, target=name)
        if "type" not in schema and not _alternatives(schema):
            return Shape(Form.ALIAS, target=name)
        return self._shape(schema, owner=owner, word=name.rpartition(".")[2])

    def _inline_object(self, schema: Mapping[str, Any], *, owner: str, word: str) -> Shape:
        properties = schema.get("properties")
        if properties and not _is_embedded(schema):
            known = _WELL_KNOWN.get(frozenset(_mapping(f"{owner}.{word}: properties", properties)))
            return Shape(Form.OBJECT, target=known or self._hoisted(schema, owner=owner, word=word))
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping) and values:
            return Shape(Form.MAP, self._item(values, owner=owner, word=singular(word)))
        return Shape(Form.MAP, Shape(Form.ANY))

    def _hoisted(self, schema: Mapping[str, Any], *, owner: str, word: str) -> str:
        prefix, _, parent = owner.rpartition(".")
        name = unused(f"{prefix}.{class_name(parent, word)}", self._components.keys() | self.schemas.keys())
        # Its place is held while its own fields are read, which may want the same name.
        self.schemas[name] = ObjectSchema(name=name)
        self.schemas[name] = self._object(name, {"description": f"`{word}` of {parent}.", **schema})
        return name

    def _item(self, schema: Mapping[str, Any], *, owner: str, word: str) -> Shape:
        shape = self._shape(schema, owner=owner, word=word)
        return msgspec.structs.replace(shape, nullable=True) if schema.get("nullable") else shape

    def _alternative(self, schema: Mapping[str, Any], *, owner: str, word: str) -> Shape:
        """A value with no type of its own: what all its alternatives agree on, or anything."""
        if schema.get("properties"):
            return self._inline_object(schema, owner=owner, word=word)
        scalars = {alternative.get("type") for alternative in _alternatives(schema)}
        if len(scalars) == 1 and scalars <= {"string", "integer", "number", "boolean"}:
            return Shape(Form(scalars.pop()))
        return Shape(Form.ANY)


_STRING_FORMATS: Final = {"byte": Form.BYTES, "date-time": Form.TIME, "int-or-string": Form.INT_OR_STRING}

_KNOWN_SHAPES: Final = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": Form.QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": Form.INT_OR_STRING,
    f"{_META}.Time": Form.TIME,
    f"{_META}.MicroTime": Form.MICRO_TIME,
    # Declared as objects, yet they hold whatever JSON they were given.
    f"{_META}.FieldsV1": Form.ALIAS,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": Form.ALIAS,
}


def _is_object(schema: Mapping[str, Any]) -> bool:
    if "properties" in schema:
        return True
    return schema.get("type") == "object" and not schema.get("additionalProperties")


def _reference(schema: Mapping[str, Any]) -> str:
    """The schema that is meant, if by name: alone, or in allOf so that a description can stand beside it."""
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
    """A whole object of any kind; a server adds apiVersion, kind and metadata to what the CRD says of it."""
    return all(schema.get(f"x-kubernetes-{name}") for name in ("embedded-resource", "preserve-unknown-fields"))


def _extensions(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name.startswith("x-kubernetes-") and name != _GVK}


def _group_version_kinds(schema: Mapping[str, Any]) -> Iterator[GroupVersionKind]:
    for gvk in _sequence(_GVK, schema.get(_GVK)):
        yield GroupVersionKind(gvk.get("group", ""), gvk.get("version", ""), gvk.get("kind", ""))


def _mapping(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DecodeError(f"{where}: a schema is expected and a {type(value).__name__} was found; correct the document")
    return value


def _sequence(where: str, value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise DecodeError(f"{where}: a list is expected and a {type(value).__name__} was found; correct the document")
    return value


# Kinds --------------------------------------------------------------------------------------------------------


def _kinds(documents: Documents, schemas: Mapping[str, ObjectSchema]) -> dict[str, Kind]:
    """Which schemas are kinds: those a resource or a subresource answers with, if they have metadata."""
    by_gvk = {schema.kinds[0]: name for name, schema in schemas.items() if len(schema.kinds) == 1}
    found: dict[str, Kind] = {}
    for kind in documents.kinds or _discovered(documents.discovery) or _from_paths(documents.documents):
        name = by_gvk.get(kind.gvk)
        if name is None or schemas[name].find("metadata") is None:
            continue
        known = found.get(name)
        # A kind may be both: Scale has resources of its own nowhere, Pod is also what pods/resize answers with.
        if known is None or (not known.plural and kind.plural):
            found[name] = msgspec.structs.replace(kind, schema=name)
    return found


def _discovered(groups: Sequence[Mapping[str, Any]]) -> list[Kind]:
    return [
        kind
        for group in groups
        for version in group.get("versions", ())
        for resource in version.get("resources", ())
        for kind in _discovered_resource(
            GroupVersion(group.get("metadata", {}).get("name", ""), version["version"]), resource
        )
    ]


def _discovered_resource(group_version: GroupVersion, resource: Mapping[str, Any]) -> Iterator[Kind]:
    namespaced = resource.get("scope") == "Namespaced"
    subresources = resource.get("subresources", ())
    names = tuple(one["subresource"] for one in subresources)
    yield Kind(
        gvk=_response_kind(group_version, resource),
        schema="",
        plural=resource["resource"],
        singular=resource.get("singularResource", ""),
        namespaced=namespaced,
        short_names=tuple(resource.get("shortNames", ())),
        categories=tuple(resource.get("categories", ())),
        subresources=names,
        # Discovery does not say where the numbers are; built-in kinds with a scale all keep them here.
        scale=("spec.replicas", "status.replicas") if "scale" in names else (),
    )
    for one in subresources:
        yield Kind(gvk=_response_kind(group_version, one), schema="", namespaced=namespaced)


def _response_kind(group_version: GroupVersion, resource: Mapping[str, Any]) -> GroupVersionKind:
    """Discovery leaves group and version out where they are those of the list it stands in."""
    kind = resource.get("responseKind") or {}
    if kind.get("version"):
        return GroupVersionKind(kind.get("group", ""), kind["version"], kind.get("kind", ""))
    return group_version.with_kind(kind.get("kind", ""))


def _from_paths(documents: Mapping[str, Mapping[str, Any]]) -> Iterator[Kind]:
    """Less than discovery knows: kind, plural name, scope and subresources, as the paths show them."""
    paths = {path: item for document in documents.values() for path, item in document.get("paths", {}).items()}
    for path, item in sorted(paths.items()):
        gvk = (item.get("get") or item.get("post") or {}).get(_GVK)
        # A list over all namespaces stands beside the paths within one, which say more.
        if not gvk or "/watch/" in path or _within_namespace(path) in paths:
            continue
        collection, _, subresource = path.partition("/{name}")
        inside = f"{collection}/{{name}}/"
        others = (other.removeprefix(inside) for other in paths if other.startswith(inside))
        yield Kind(
            gvk=GroupVersionKind(gvk.get("group", ""), gvk.get("version", ""), gvk.get("kind", "")),
            schema="",
            plural="" if subresource else collection.rpartition("/")[2],
            namespaced="/namespaces/{namespace}/" in path,
            subresources=() if subresource else tuple(sorted(name for name in others if "/" not in name)),
        )


def _within_namespace(path: str) -> str:
    before, _, resource = path.rpartition("/")
    return f"{before}/namespaces/{{namespace}}/{resource}"
