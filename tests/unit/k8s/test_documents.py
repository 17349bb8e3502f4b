"""The OpenAPI documents as package data."""

from __future__ import annotations

import pytest

from kubewright.api.codec import encode_tree
from kubewright.api.kinds import GroupVersionKind
from kubewright.errors import ConfigError
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import PodSpec
from kubewright.k8s.documents import (
    component,
    component_name,
    discovery,
    field_extensions,
    field_schema,
    group_versions,
    module_of,
    openapi_document,
    schema_of,
)

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


@pytest.mark.parametrize("group_version", group_versions())
def test_every_document_is_complete(group_version: str) -> None:
    document = openapi_document(group_version)

    text = encode_tree(document).decode()
    schemas = document["components"]["schemas"]
    assert document["paths"]
    assert document["openapi"].startswith("3.")
    for reference in text.split("#/components/schemas/")[1:]:
        assert reference[: reference.index('"')] in schemas


def test_a_schema_only_another_document_uses_is_lent_not_shown() -> None:
    name = "io.k8s.api.authentication.v1.TokenRequest"

    assert name in openapi_document("v1")["components"]["schemas"]
    assert name not in openapi_document("authentication.k8s.io/v1")["components"]["schemas"]
    assert component(name) is not None


def test_an_unknown_group_version_is_refused_in_one_sentence() -> None:
    with pytest.raises(ConfigError, match="'apps/v9' is no built-in group-version"):
        openapi_document("apps/v9")


def test_merge_keys_and_list_types_of_a_field_are_found_by_its_path() -> None:
    assert field_extensions(DEPLOYMENT, "spec.template.spec.containers") == {
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-list-type": "map",
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge",
    }
    assert field_extensions(DEPLOYMENT, "spec.selector") == {"x-kubernetes-map-type": "atomic"}
    assert field_extensions(DEPLOYMENT, "spec.nothing") == {}


def test_a_path_leads_through_lists_and_maps() -> None:
    protocol = field_schema(DEPLOYMENT, "spec.template.spec.containers.ports.protocol")
    limit = field_schema(DEPLOYMENT, "spec.template.spec.containers.resources.limits.cpu")

    assert protocol is not None
    assert protocol["default"] == "TCP"
    assert limit is not None
    assert "fixed-point" in limit["description"]
    assert field_schema(DEPLOYMENT, "spec.replicas.deeper.still") is None


def test_a_kind_has_a_schema_with_its_description() -> None:
    schema = schema_of(DEPLOYMENT)

    assert schema is not None
    assert schema["description"].startswith("Deployment enables declarative updates")
    assert schema_of(GroupVersionKind("apps", "v1", "Nothing")) is None
    assert schema_of(GroupVersionKind("no.such.group", "v1", "Deployment")) is None


def test_a_class_leads_to_its_schema() -> None:
    assert component_name(Deployment) == "io.k8s.api.apps.v1.Deployment"
    assert component_name(PodSpec) == "io.k8s.api.core.v1.PodSpec"
    assert component_name(str) is None


def test_a_component_that_is_not_there_is_none() -> None:
    assert component("io.k8s.api.core.v1.Nothing") is None
    assert component("io.cert-manager.v1.Certificate") is None
    assert component("Nothing") is None


def test_a_component_says_its_module() -> None:
    assert module_of("io.k8s.api.apps.v1.Deployment") == "apps.v1"
    assert module_of("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService") == "apiregistration.v1"
    assert module_of("io.k8s.apimachinery.pkg.runtime.RawExtension") == "meta.v1"


def test_discovery_begins_with_the_core_group() -> None:
    groups = [group["metadata"].get("name", "") for group in discovery()]

    assert groups[0] == ""
    assert "apps" in groups
    assert len(groups) == len(set(groups))
