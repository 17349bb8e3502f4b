"""From a class to its structural schema.

`schema_for` takes any model, `schema_for_kind` a whole kind with apiVersion, kind and metadata. The class is the only
source: annotations give types, `Field` markers bounds and rules, defaults defaults, docstrings descriptions.
`generate.crds` calls it; the result is plain JSON, the same for the same class every time.

Three decisions:

- an attribute without a default is required, one with a default is not;
- a Python default is also the server's (see `builder.defaults`), but not inside a status: the server would fill those
  in when an object is read and show a state that nobody observed;
- None means absent. Null in JSON is allowed only where Python can tell it from absent: no default, another default
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
from kubewright.schema.builder.annotations import TypeHint, parse_annotation
from kubewright.schema.builder.compound import Items, Values, choices_of, items_of, union_of, values_of
from kubewright.schema.builder.defaults import default_of, empty_breaks_choice, has_rules, with_defaults
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

# Types that people try first, and the type of Kubernetes to use instead.
_SUGGESTIONS: dict[Any, str] = {timedelta: "Duration", Decimal: "Quantity"}


def schema_for(model: type[Model]) -> Schema:
    """The structural schema of a model; for a kind, that of the whole object."""
    if issubclass(class_of(model), KubeObject):
        return schema_for_kind(cast("type[KubeObject]", model))
    return _finish(_Builder().model(model, _Position(subject=_name(model))))


def schema_for_kind(kind: type[KubeObject]) -> Schema:
    """The structural schema of a whole object: apiVersion, kind, metadata and the fields of the class."""
    definition_of(kind)
    if issubclass(kind, DynamicObject):
        raise SchemaError(f"{kind.__name__}: a dynamic kind has no schema of its own; declare a class for it")
    node = _Builder().model(kind, _Position(subject=kind.__name__))
    properties = {"apiVersion": dict(API_VERSION), "kind": dict(KIND), "metadata": {"type": "object"}}
    node["properties"] = {**properties, **node["properties"], "metadata": {"type": "object"}}
    for name, words in (("spec", "desired"), ("status", "observed")):
        if name in node["properties"]:
            node["properties"][name].setdefault("description", f"The {words} state of the {kind.kind}.")
    structural.check_root(node)
    return _finish(node)


def _finish(node: Node) -> Schema:
    structural.check(node)
    schema: Schema = plain(node)
    return schema


@final
class _Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a class the builder is."""

    subject: str
    defaults: bool = True
    """False inside a status."""
    ancestors: tuple[Any, ...] = ()
    """The classes around this position, to detect a class that contains itself."""

    def at(self, subject: str) -> _Position:
        return msgspec.structs.replace(self, subject=subject)


@final
class _Builder:
    """Makes nodes from annotations, from the outside in."""

    def model(self, model: Any, position: _Position) -> Node:
        """The object schema of a class, or of a generic class with its arguments."""
        cls = class_of(model)
        position = _Position(
            subject=_name(cls),
            defaults=position.defaults and not issubclass(cls, Status),
            ancestors=(*position.ancestors, model),
        )
        node = Node(position.subject, {"type": "object", "properties": {}})
        if (text := class_doc(cls)) is not None:
            node["description"] = text
        fields = fields_of(model)
        docs = attribute_docs(cls)
        removal_rules: list[Rule] = []
        required = []
        for info in fields:
            child = self._attribute(cls, info, docs.get(info.name), position)
            if child is None:
                continue
            node["properties"][info.encode_name] = child.node
            if child.required:
                required.append(info.encode_name)
            elif child.immutable and "default" not in child.node:
                removal_rules.append(rules.no_removal_rule(info.encode_name))
        if required:
            node["required"] = sorted(required)
        self._class_marker(cls, fields, node)
        if removal_rules:
            node.setdefault("x-kubernetes-validations", []).extend(rules.rules_schema(removal_rules))
        return node

    def _class_marker(self, cls: type[msgspec.Struct], fields: tuple[FieldInfo, ...], node: Node) -> None:
        marker = marker_of(cls)
        _refuse_attribute_options(marker, node.subject)
        self._decorate(marker, node, "the object", {info.name: info.encode_name for info in fields})

    def _attribute(
        self, cls: type[msgspec.Struct], info: FieldInfo, text: str | None, position: _Position
    ) -> _Attribute | None:
        position = position.at(f"{position.subject}.{info.name}")
        if issubclass(cls, KubeObject) and info.name == "status":
            position = msgspec.structs.replace(position, defaults=False)
        hint = parse_annotation(info.type, subject=position.subject)
        if not hint.arms:
            return None  # `status: None` on a kind without one
        node = self.value(hint, position, what=info.encode_name)
        if text:
            node["description"] = text
        _allow_null(hint.marker, node, allowed=hint.none and (hint.unset or info.default is not None))
        required = info.required if hint.marker.required is None else hint.marker.required
        if "default" not in node and position.defaults and not hint.marker.required:
            default = default_of(info, subject=node.subject)
            if default == {} and empty_breaks_choice(hint):
                required = _without_default(cls, node)
            elif default is not UNSET:
                # The server evaluates CEL rules on a default before it fills in the defaults inside it, so they must
                # be in it already.
                node["default"] = with_defaults(default, node) if has_rules(node) else default
        return _Attribute(node=node, required=required, immutable=bool(hint.marker.immutable))

    def value(self, hint: TypeHint, position: _Position, *, what: str) -> Node:
        """The schema of one value: its type, then its markers."""
        marker = hint.marker
        if marker.int_or_string:
            node = Node(position.subject, copy.deepcopy(INT_OR_STRING))
        elif marker.type is not None:
            node = Node(position.subject, {"type": marker.type})
            if marker.type == "array":
                node["items"] = Node(f"{position.subject}[]", PRESERVED)
        else:
            node = self._schema_of_type(hint, position)
        self._decorate(marker, node, what, wire_names(hint, subject=position.subject))
        return node

    def _decorate(self, marker: Field, node: Node, what: str, wire_names: dict[str, str]) -> None:
        apply(marker, node)
        if (
            marker.embedded_object
            and node.keys() <= {*EMBEDDED, "description"}
            and node.get("type", "object") == "object"
        ):
            node.update(EMBEDDED)  # its fields are unknown: preserve all
        if marker.list_map_keys is not None:
            node["x-kubernetes-list-map-keys"] = [wire_names.get(name, name) for name in marker.list_map_keys]
        extra = rules.choice_rules(marker, node, wire_names, subject=node.subject)
        if marker.immutable:
            extra.insert(0, rules.immutable_rule(what))
        if extra:
            node.setdefault("x-kubernetes-validations", []).extend(rules.rules_schema(extra))

    def _schema_of_type(self, hint: TypeHint, position: _Position) -> Node:
        anything = bool(hint.marker.preserve_unknown_fields)
        if len(hint.arms) != 1:
            schema = union_of(hint.arms)
            if schema is None and not anything:
                raise SchemaError(
                    f"{position.subject}: {_type_names(hint.arms)} is no type a schema can have; use one type, "
                    "int | str, a model with an optional attribute for each, or Field(preserve_unknown_fields=True)"
                )
            return Node(position.subject, schema or PRESERVED)
        (arm,) = hint.arms
        if arm in STANDARD:
            return Node(position.subject, copy.deepcopy(STANDARD[arm]))
        if (schema := choices_of(arm)) is not None:
            return Node(position.subject, schema)
        if (items := items_of(arm, subject=position.subject)) is not None:
            return self._list(items, hint.marker, position)
        if (values := values_of(arm, subject=position.subject)) is not None:
            return self._map(values, position)
        if is_model(arm):
            return self._nested(arm, position, anything=anything)
        if anything:
            return Node(position.subject, PRESERVED)
        suggestion = _SUGGESTIONS.get(arm, "a Model, a scalar, a list or a dict")
        raise SchemaError(
            f"{position.subject}: {_type_names(hint.arms)} has no schema; use {suggestion}, "
            "or write Field(type=...) or Field(preserve_unknown_fields=True)"
        )

    def _list(self, items: Items, marker: Field, position: _Position) -> Node:
        hint = parse_annotation(items.annotation, subject=f"{position.subject}[]")
        node = Node(position.subject, {"type": "array", "items": self._inner(hint, f"{position.subject}[]", position)})
        if items.length is not None:
            node.update(minItems=items.length, maxItems=items.length)
        # The marker of the list is applied later and so overrides these.
        if items.distinct:
            node["x-kubernetes-list-type"] = "set"
        elif marker.list_type is None and hint.arms and hint.arms[0] in ITEM_LISTS:
            apply(ITEM_LISTS[hint.arms[0]], node)
        return node

    def _map(self, values: Values, position: _Position) -> Node:
        if values.annotation is Any:
            return Node(position.subject, {"type": "object", **PRESERVED})
        hint = parse_annotation(values.annotation, subject=f"{position.subject}[*]")
        inner = self._inner(hint, f"{position.subject}[*]", position)
        return Node(position.subject, {"type": "object", "additionalProperties": inner})

    def _inner(self, hint: TypeHint, subject: str, position: _Position) -> Node:
        """An item of a list or a value of a map."""
        _refuse_attribute_options(hint.marker, subject)
        if not hint.arms:
            raise SchemaError(f"{subject}: None alone is no type; give the type of the items or values")
        node = self.value(hint, position.at(subject), what="the value")
        _allow_null(hint.marker, node, allowed=hint.none)
        return node

    def _nested(self, arm: Any, position: _Position, *, anything: bool) -> Node:
        cls = class_of(arm)
        if issubclass(cls, KubeObject):
            text = class_doc(cls)
            return Node(position.subject, {**EMBEDDED, "description": text} if text else EMBEDDED)
        if arm in position.ancestors:
            if anything:
                return Node(position.subject, {"type": "object", **PRESERVED})
            raise SchemaError(
                f"{position.subject}: {cls.__name__} contains itself, which a structural schema cannot express; "
                f"annotate it as Annotated[{cls.__name__}, Field(preserve_unknown_fields=True)]"
            )
        node = self.model(arm, position)
        return Node(position.subject, node)


@final
class _Attribute(msgspec.Struct, frozen=True, kw_only=True):
    """What one attribute adds to its class's schema."""

    node: Node
    required: bool
    immutable: bool


def _allow_null(marker: Field, node: Node, *, allowed: bool) -> None:
    """Make a value nullable if the marker says so or, if it does not say, the annotation."""
    if not (allowed if marker.nullable is None else marker.nullable):
        return
    node["nullable"] = True
    if "enum" in node:
        # The server rejects null wherever there is an enum, even one that lists it. It does not evaluate rules on null,
        # so a rule takes the place of the enum.
        values = node.pop("enum")
        node.setdefault("x-kubernetes-validations", []).extend(rules.rules_schema([rules.enum_rule(values)]))


def _without_default(cls: type[msgspec.Struct], node: Node) -> bool:
    """True if an empty default breaks a rule and the attribute is to be required instead.

    The empty default of a kind's spec is ours; anywhere else the user wrote it.
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
            raise SchemaError(f"{subject}: {option} has no meaning here; put it on an attribute of a class")


def _name(model: Any) -> str:
    return str(getattr(getattr(model, "__origin__", model), "__name__", model))


def _type_names(arms: tuple[Any, ...]) -> str:
    return " | ".join(arm.__name__ if isinstance(arm, type) else str(arm).replace("typing.", "") for arm in arms)
