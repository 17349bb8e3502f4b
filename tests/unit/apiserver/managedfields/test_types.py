"""How schemas become field types."""

from __future__ import annotations

from typing import Any

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.managedfields.types import UNTYPED, FieldType, type_of_kind, type_of_schema


def field(kind: FieldType | None, *path: str) -> FieldType:
    """The type at a path of names; a step into a list is a step into its items."""
    for name in path:
        assert kind is not None
        while kind.items is not None and kind.map is None:
            kind = kind.items.element
        assert kind.map is not None
        kind = kind.map.fields.get(name, kind.map.element)
    assert kind is not None
    return kind


DEPLOYMENT = type_of_kind(GroupVersionKind("apps", "v1", "Deployment"))


def test_containers_are_known_by_their_name_and_ports_by_a_defaulted_protocol() -> None:
    containers = field(DEPLOYMENT, "spec", "template", "spec", "containers").items
    ports = field(DEPLOYMENT, "spec", "template", "spec", "containers", "ports").items
    assert containers is not None
    assert containers.keys == ("name",)
    assert ports is not None
    assert ports.keys == ("containerPort", "protocol")
    assert ports.defaults["protocol"] == "TCP"


def test_a_selector_is_atomic_and_labels_are_not() -> None:
    assert field(DEPLOYMENT, "spec", "selector").leaf
    assert not field(DEPLOYMENT, "metadata", "labels").leaf


def test_finalizers_are_a_set_and_arguments_are_atomic() -> None:
    finalizers = field(DEPLOYMENT, "metadata", "finalizers")
    assert finalizers.items is not None
    assert (finalizers.items.atomic, finalizers.items.keys) == (False, ())
    assert field(DEPLOYMENT, "spec", "template", "spec", "containers", "args").leaf


def test_a_zero_object_has_the_fields_without_omitempty() -> None:
    assert DEPLOYMENT is not None
    assert DEPLOYMENT.empty["spec"]["strategy"] == {}
    assert DEPLOYMENT.empty["spec"]["template"]["spec"] == {"containers": None}
    event = type_of_kind(GroupVersionKind("", "v1", "Event"))
    assert event is not None
    assert (event.empty["eventTime"], event.empty["reportingComponent"]) == (None, "")


def test_an_unknown_kind_has_no_type() -> None:
    assert type_of_kind(GroupVersionKind("example.io", "v1", "Thing")) is None


def test_a_kind_may_contain_itself() -> None:
    crd = type_of_kind(GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
    schema = field(crd, "spec", "versions", "schema", "openAPIV3Schema")
    assert field(schema, "properties", "any") is schema


def test_custom_resources_have_object_meta() -> None:
    kind = type_of_schema({"type": "object", "properties": {"metadata": {"type": "object"}}})
    assert field(kind, "metadata", "finalizers").items is not None
    assert field(kind, "kind").scalar == "string"


def test_without_a_schema_the_type_is_deduced() -> None:
    assert type_of_schema(None) is UNTYPED
    assert field(UNTYPED, "a", "b") is UNTYPED


def test_unknown_fields_are_allowed_where_they_are_preserved_and_below() -> None:
    inner: dict[str, Any] = {"type": "object", "properties": {"known": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"in": inner}},
            "strict": inner,
        },
    }
    kind = type_of_schema(schema)
    assert field(kind, "free", "other") is UNTYPED
    assert field(kind, "free", "in", "other") is UNTYPED
    strict = field(kind, "strict").map
    assert strict is not None
    assert strict.element is None


def test_an_embedded_object_has_metadata_too() -> None:
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    kind = type_of_schema({"type": "object", "properties": {"child": embedded}})
    assert not field(kind, "child", "metadata", "labels").leaf


def test_a_list_without_a_type_is_atomic() -> None:
    listed = {"type": "array", "items": {"type": "string"}}
    kind = type_of_schema({"type": "object", "properties": {"plain": listed}})
    assert field(kind, "plain").leaf


def test_the_default_of_a_key_is_known() -> None:
    listed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {
            "type": "object",
            "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}},
        },
    }
    ports = field(type_of_schema({"type": "object", "properties": {"ports": listed}}), "ports").items
    assert ports is not None
    assert ports.defaults == {"protocol": "TCP"}
