"""Documents read into kinds, schemas and shapes."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.api.kinds import GroupVersionKind
from kubewright.errors import DecodeError
from kubewright.generate.models.openapi import Api, Documents, TypeKind, ValueType, read_api
from kubewright.generate.models.sources import builtin_documents

META = "io.k8s.apimachinery.pkg.apis.meta.v1"


@pytest.fixture(scope="module")
def builtin() -> Api:
    return read_api(builtin_documents())


def test_a_field_keeps_everything_later_parts_ask_about(builtin: Api) -> None:
    ports = builtin.schemas["io.k8s.api.core.v1.Container"].find("ports")
    protocol = builtin.schemas["io.k8s.api.core.v1.ContainerPort"].find("protocol")

    assert ports is not None
    assert ports.extensions["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports.extensions["x-kubernetes-patch-merge-key"] == "containerPort"
    assert protocol is not None
    assert protocol.default == "TCP"
    assert protocol.enum == ("SCTP", "TCP", "UDP")


def test_references_to_simple_types_become_those_types(builtin: Api) -> None:
    lease = builtin.schemas["io.k8s.api.coordination.v1.LeaseSpec"].find("renewTime")
    surge = builtin.schemas["io.k8s.api.apps.v1.RollingUpdateDeployment"].find("maxSurge")
    limits = builtin.schemas["io.k8s.api.core.v1.ResourceRequirements"].find("limits")

    assert lease is not None
    assert lease.type.kind is TypeKind.MICRO_TIME
    assert surge is not None
    assert surge.type.kind is TypeKind.INT_OR_STRING
    assert limits is not None
    assert limits.type.item is not None
    assert (limits.type.kind, limits.type.item.kind) == (TypeKind.MAP, TypeKind.QUANTITY)


def test_kinds_are_what_resources_and_subresources_answer_with(builtin: Api) -> None:
    kinds = {str(kind.gvk): kind for kind in builtin.kinds.values()}

    assert kinds["apps/v1 Deployment"].plural == "deployments"
    assert "scale" in kinds["apps/v1 Deployment"].subresources
    assert kinds["policy/v1 Eviction"].plural == ""
    assert kinds["autoscaling/v1 Scale"].plural == ""
    assert "v1 DeleteOptions" not in kinds
    assert "v1 PodList" not in kinds


def test_without_discovery_the_paths_tell_names_and_scope(builtin: Api) -> None:
    packed = builtin_documents()

    read = read_api(Documents(documents=packed.documents))

    assert read.kinds.keys() == builtin.kinds.keys()
    for name, kind in read.kinds.items():
        known = builtin.kinds[name]
        assert (kind.gvk, kind.plural, kind.namespaced) == (known.gvk, known.plural, known.namespaced)
        assert kind.subresources == tuple(sorted(known.subresources))


def _shape(schema: dict[str, Any]) -> ValueType:
    components = {"io.x.v1.Box": {"type": "object", "properties": {"value": schema}}}
    documents = Documents(documents={"x.io/v1": {"components": {"schemas": components}}})
    found = read_api(documents).schemas["io.x.v1.Box"].find("value")
    assert found is not None
    return found.type


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        ({"type": "string"}, TypeKind.STRING),
        ({"type": "string", "format": "byte"}, TypeKind.BYTES),
        ({"type": "string", "format": "date-time"}, TypeKind.TIME),
        ({"type": "string", "format": "ipv4"}, TypeKind.STRING),
        ({"type": "integer", "format": "int64"}, TypeKind.INTEGER),
        ({"type": "number"}, TypeKind.NUMBER),
        ({"type": "boolean"}, TypeKind.BOOLEAN),
        ({"x-kubernetes-int-or-string": True}, TypeKind.INT_OR_STRING),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, TypeKind.INT_OR_STRING),
        ({"anyOf": [{"type": "string"}, {"type": "string"}]}, TypeKind.STRING),
        ({"anyOf": [{"type": "string"}, {"type": "object"}]}, TypeKind.ANY),
        ({}, TypeKind.ANY),
        ({"type": "object"}, TypeKind.MAP),
        ({"type": "object", "additionalProperties": True}, TypeKind.MAP),
        ({"type": "array"}, TypeKind.LIST),
        ({"properties": {"a": {"type": "string"}}}, TypeKind.OBJECT),
    ],
)
def test_every_schema_has_a_shape(schema: dict[str, Any], form: TypeKind) -> None:
    assert _shape(schema).kind is form


def test_an_inline_object_gets_a_name_from_its_place() -> None:
    shape = _shape({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}})

    assert shape.item is not None
    assert shape.item.target == "io.x.v1.BoxValue"


def test_an_embedded_object_is_free_form_also_where_the_server_adds_fields_to_its_schema() -> None:
    shape = _shape(
        {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}},
        }
    )

    assert shape == ValueType(TypeKind.MAP, ValueType(TypeKind.ANY))


def test_what_is_no_schema_is_refused_with_its_path() -> None:
    with pytest.raises(DecodeError, match=r"io\.x\.v1\.Box\.value: a schema is expected"):
        _shape("text")  # type: ignore[arg-type]  # that is the point


def test_a_document_without_a_map_of_schemas_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"x\.io/v1: components\.schemas"):
        read_api(Documents(documents={"x.io/v1": {"components": {"schemas": []}}}))


def test_a_kind_of_the_same_name_in_two_groups_stays_two_kinds(builtin: Api) -> None:
    events = [kind.gvk for kind in builtin.kinds.values() if kind.gvk.kind == "Event"]

    assert sorted(events) == [GroupVersionKind("", "v1", "Event"), GroupVersionKind("events.k8s.io", "v1", "Event")]
