"""From a class to its structural schema.

`schema_for` takes any model, `schema_for_kind` a whole kind with apiVersion, kind and metadata. The class is the only
source: annotations give types, `Field` markers give bounds and rules, defaults give defaults, docstrings give
descriptions. Called by `generate.crds`; the result is plain JSON, the same for the same class every time.

Three decisions:

- an attribute without a default is required, one with a default is not;
- a Python default is also the server's (see `schema.defaults`), but not inside a status: the server would fill those
  in when an object is read and show a state that nobody observed;
- None means absent. Null on the wire is allowed only where Python can tell it from absent: no default, another default
  than None, or `T | None | Unset`.
"""

from __future__ import annotations

import copy
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast, final

import msgspec
from msgspec.structs import FieldInfo

from kubewright.api.dynamic import DynamicObject
from kubewright.api.fields import Field, Rule
from kubewright.api.model import UNSET, Model
from kubewright.api.resource import KubeObject, Status, definition_of
from kubewright.errors import SchemaError
from kubewright.schema.builder import rules, structural
from kubewright.schema.builder.annotations import Hint, read
from kubewright.schema.builder.compound import Items, Values, choices_of, items_of, union_of, values_of
from kubewright.schema.builder.defaults import default_of, empty_breaks_choice, filled, has_rules
from kubewright.schema.builder.docstrings import attribute_docs, class_doc
from kubewright.schema.builder.markers import apply
from kubewright.schema.builder.models import class_of, fields_of, is_model, marker_of, wire_names
from kubewright.schema.builder.node import Node, Schema, plain
from kubewright.schema.builder.standard import (
    API_VERSION,
    EMBEDDED,
    INT_OR_STRING,
    ITEM_LISTS,
    KIND,
    PRESERVED,
    STANDARD,
)

__all__ = ("schema_for", "schema_for_kind")

# What people reach for first, and what Kubernetes writes instead.
_BETTER: dict[Any, str] = {timedelta: "Duration", Decimal: "Quantity"}


def schema_for(model: type[Model]) -> Schema:
    """The structural schema of a model; for a kind, that of the whole object."""
    if issubclass(class_of(model), KubeObject):
        return schema_for_kind(cast("type[KubeObject]", model))
    return _finished(_Builder().model(model, _Place(subject=_name(model))))


def schema_for_kind(kind: type[KubeObject]) -> Schema:
    """The structural schema of a whole object: apiVersion, kind, metadata and what the class adds."""
    definition_of(kind)
    if issubclass(kind, DynamicObject):
        raise SchemaError(f"{kind.__name__}: a dynamic kind has no schema of its own; declare a class for it")
    node = _Builder().model(kind, _Place(subject=kind.__name__))
    properties = {"apiVersion": dict(API_VERSION), "kind": dict(KIND), "metadata": {"type": "object"}}
    node["properties"] = {**properties, **node["properties"], "metadata": {"type": "object"}}
    for name, words in (("spec", "desired"), ("status", "observed")):
        if name in node["properties"]:
            node["properties"][name].setdefault("description", f"The {words} state of the {kind.kind}.")
    structural.check_root(node)
    return _finished(node)


def _finished(node: Node) -> Schema:
    structural.check(node)
    finished: Schema = plain(node)
    return finished


@final
class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a class the builder is."""

    subject: str
    defaults: bool = True
    """False inside a status."""
    opened: tuple[Any, ...] = ()
    """The classes around this place: one that comes again contains itself."""

    def at(self, subject: str) -> _Place:
        return msgspec.structs.replace(self, subject=subject)


@final
class _Builder:
    """Annotations to nodes, from the outside in."""

    def model(self, model: Any, place: _Place) -> Node:
        """The object schema of a class, or of a generic class with its arguments."""
        cls = class_of(model)
        place = _Place(
            subject=_name(cls),
            defaults=place.defaults and not issubclass(cls, Status),
            opened=(*place.opened, model),
        )
        node = Node(place.subject, {"type": "object", "properties": {}})
        if (text := class_doc(cls)) is not None:
            node["description"] = text
        fields = fields_of(model)
        docs = attribute_docs(cls)
        kept: list[Rule] = []
        required = []
        for info in fields:
            child = self._attribute(cls, info, docs.get(info.name), place)
            if child is None:
                continue
            node["properties"][info.encode_name] = child.node
            if child.required:
                required.append(info.encode_name)
            elif child.immutable and "default" not in child.node:
                kept.append(rules.kept_once_set(info.encode_name))
        if required:
            node["required"] = sorted(required)
        self._class_marker(cls, fields, node)
        if kept:
            node.setdefault("x-kubernetes-validations", []).extend(rules.written(kept))
        return node

    def _class_marker(self, cls: type[msgspec.Struct], fields: tuple[FieldInfo, ...], node: Node) -> None:
        marker = marker_of(cls)
        _refuse_attribute_options(marker, node.subject)
        self._decorate(marker, node, "the object", {info.name: info.encode_name for info in fields})

    def _attribute(
        self, cls: type[msgspec.Struct], info: FieldInfo, text: str | None, place: _Place
    ) -> _Attribute | None:
        place = place.at(f"{place.subject}.{info.name}")
        if issubclass(cls, KubeObject) and info.name == "status":
            place = msgspec.structs.replace(place, defaults=False)
        hint = read(info.type, subject=place.subject)
        if not hint.arms:
            return None  # `status: None` on a kind without one
        node = self.value(hint, place, what=info.encode_name)
        if text:
            node["description"] = text
        _allow_null(hint.marker, node, allowed=hint.none and (hint.unset or info.default is not None))
        required = info.required if hint.marker.required is None else hint.marker.required
        if "default" not in node and place.defaults and not hint.marker.required:
            default = default_of(info, subject=node.subject)
            if default == {} and empty_breaks_choice(hint):
                required = _without_default(cls, node)
            elif default is not UNSET:
                # The server asks the rules about a default as it stands, before the defaults inside it are filled in.
                node["default"] = filled(default, node) if has_rules(node) else default
        return _Attribute(node=node, required=required, immutable=bool(hint.marker.immutable))

    def value(self, hint: Hint, place: _Place, *, what: str) -> Node:
        """The schema of one value: its type, then its markers."""
        marker = hint.marker
        if marker.int_or_string:
            node = Node(place.subject, copy.deepcopy(INT_OR_STRING))
        elif marker.type is not None:
            node = Node(place.subject, {"type": marker.type})
            if marker.type == "array":
                node["items"] = Node(f"{place.subject}[]", PRESERVED)
        else:
            node = self._typed(hint, place)
        self._decorate(marker, node, what, wire_names(hint, subject=place.subject))
        return node

    def _decorate(self, marker: Field, node: Node, what: str, wire_names: dict[str, str]) -> None:
        apply(marker, node)
        if (
            marker.embedded_object
            and node.keys() <= {*EMBEDDED, "description"}
            and node.get("type", "object") == "object"
        ):
            node.update(EMBEDDED)  # nothing is known of its fields: keep them all
        if marker.list_map_keys is not None:
            node["x-kubernetes-list-map-keys"] = [wire_names.get(name, name) for name in marker.list_map_keys]
        extra = rules.choices(marker, node, wire_names, subject=node.subject)
        if marker.immutable:
            extra.insert(0, rules.unchanged(what))
        if extra:
            node.setdefault("x-kubernetes-validations", []).extend(rules.written(extra))

    def _typed(self, hint: Hint, place: _Place) -> Node:
        anything = bool(hint.marker.preserve_unknown_fields)
        if len(hint.arms) != 1:
            schema = union_of(hint.arms)
            if schema is None and not anything:
                raise SchemaError(
                    f"{place.subject}: {_words(hint.arms)} is no type a schema can have; use one type, int | str, "
                    "a model with an optional attribute for each form, or Field(preserve_unknown_fields=True)"
                )
            return Node(place.subject, schema or PRESERVED)
        (arm,) = hint.arms
        if arm in STANDARD:
            return Node(place.subject, copy.deepcopy(STANDARD[arm]))
        if (schema := choices_of(arm)) is not None:
            return Node(place.subject, schema)
        if (items := items_of(arm, subject=place.subject)) is not None:
            return self._list(items, hint.marker, place)
        if (values := values_of(arm, subject=place.subject)) is not None:
            return self._map(values, place)
        if is_model(arm):
            return self._nested(arm, place, anything=anything)
        if anything:
            return Node(place.subject, PRESERVED)
        better = _BETTER.get(arm, "a Model, a scalar, a list or a dict")
        raise SchemaError(
            f"{place.subject}: {_words(hint.arms)} has no schema; use {better}, "
            "or say Field(type=...) or Field(preserve_unknown_fields=True)"
        )

    def _list(self, items: Items, marker: Field, place: _Place) -> Node:
        hint = read(items.annotation, subject=f"{place.subject}[]")
        node = Node(place.subject, {"type": "array", "items": self._inner(hint, f"{place.subject}[]", place)})
        if items.length is not None:
            node.update(minItems=items.length, maxItems=items.length)
        # What the marker says about the list is written later and so wins over these.
        if items.distinct:
            node["x-kubernetes-list-type"] = "set"
        elif marker.list_type is None and hint.arms and hint.arms[0] in ITEM_LISTS:
            apply(ITEM_LISTS[hint.arms[0]], node)
        return node

    def _map(self, values: Values, place: _Place) -> Node:
        if values.annotation is Any:
            return Node(place.subject, {"type": "object", **PRESERVED})
        hint = read(values.annotation, subject=f"{place.subject}[*]")
        inner = self._inner(hint, f"{place.subject}[*]", place)
        return Node(place.subject, {"type": "object", "additionalProperties": inner})

    def _inner(self, hint: Hint, subject: str, place: _Place) -> Node:
        """An item of a list or a value of a map."""
        _refuse_attribute_options(hint.marker, subject)
        if not hint.arms:
            raise SchemaError(f"{subject}: None alone is no type; say what the list or map holds")
        node = self.value(hint, place.at(subject), what="the value")
        _allow_null(hint.marker, node, allowed=hint.none)
        return node

    def _nested(self, arm: Any, place: _Place, *, anything: bool) -> Node:
        cls = class_of(arm)
        if issubclass(cls, KubeObject):
            text = class_doc(cls)
            return Node(place.subject, {**EMBEDDED, "description": text} if text else EMBEDDED)
        if arm in place.opened:
            if anything:
                return Node(place.subject, {"type": "object", **PRESERVED})
            raise SchemaError(
                f"{place.subject}: {cls.__name__} contains itself, which a structural schema cannot say; "
                f"annotate it as Annotated[{cls.__name__}, Field(preserve_unknown_fields=True)]"
            )
        node = self.model(arm, place)
        return Node(place.subject, node)


@final
class _Attribute(msgspec.Struct, frozen=True, kw_only=True):
    """What one attribute adds to its class's schema."""

    node: Node
    required: bool
    immutable: bool


def _allow_null(marker: Field, node: Node, *, allowed: bool) -> None:
    """Make a value nullable if the marker or, where it is silent, the annotation says so."""
    if not (allowed if marker.nullable is None else marker.nullable):
        return
    node["nullable"] = True
    if "enum" in node:
        # No enum of the server ever accepts null, not even one that lists it; a rule is not asked about null.
        values = node.pop("enum")
        node.setdefault("x-kubernetes-validations", []).extend(rules.written([rules.any_of(values)]))


def _without_default(cls: type[msgspec.Struct], node: Node) -> bool:
    """True where an empty default breaks a rule and the attribute is to be required instead.

    A kind gets its empty spec from us; anywhere else somebody wrote the default.
    """
    if issubclass(cls, KubeObject):
        return True
    raise SchemaError(
        f"{node.subject}: the default is an empty object, which breaks the model's one_of or at_least_one_of; "
        "use T | None = None, or a default with a choice made"
    )


def _refuse_attribute_options(marker: Field, subject: str) -> None:
    for option in ("required", "default"):
        if getattr(marker, option) not in (None, UNSET):
            raise SchemaError(f"{subject}: {option} says nothing here; put it on an attribute of a class")


def _name(model: Any) -> str:
    return str(getattr(getattr(model, "__origin__", model), "__name__", model))


def _words(arms: tuple[Any, ...]) -> str:
    return " | ".join(arm.__name__ if isinstance(arm, type) else str(arm).replace("typing.", "") for arm in arms)
