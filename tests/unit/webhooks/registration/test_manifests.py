"""Declarations as the objects a cluster needs."""

from __future__ import annotations

import base64

import pytest

from kubewright import Resource, Spec, Status
from kubewright.errors import ConfigError
from kubewright.k8s.core.v1 import Namespace, Pod
from kubewright.webhooks.admission.declarations import default, mutate, validate
from kubewright.webhooks.conversion.declarations import convert
from kubewright.webhooks.registration.manifests import (
    ServiceReference,
    conversion_stanza,
    converted_crds,
    webhook_configurations,
)

SERVICE = ServiceReference(name="hooks", namespace="shop-system")


class CacheSpec(Spec):
    size: int = 1


class Cache(Resource[CacheSpec, Status], group="shop.example.io", version="v1"):
    """A cache."""


class OldCache(Resource[CacheSpec, Status], group="shop.example.io", version="v1alpha1", kind="Cache", storage=False):
    """A cache as it was."""


@default(Cache)
def default_cache(cache: Cache) -> None:
    cache.spec.size = cache.spec.size or 1


@validate(Cache, on=("create", "delete"), match_conditions={"small": "object.spec.size < 9"}, timeout_seconds=9)
def validate_cache(cache: Cache) -> None:
    """Nothing is wrong with any."""


@mutate(
    Pod,
    on="create",
    name="inject",
    namespace_selector={"inject": "yes"},
    object_selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    failure_policy="Ignore",
    reinvocation_policy="IfNeeded",
    resources=("pods", "pods/ephemeralcontainers"),
)
def inject(pod: Pod) -> None:
    pod.metadata.labels["injected"] = "yes"


@convert(OldCache, Cache)
def up(old: OldCache) -> Cache:
    return Cache(metadata=old.metadata, spec=old.spec)


def test_one_configuration_of_each_type() -> None:
    mutating, validating = webhook_configurations([default_cache, validate_cache, inject, up], service=SERVICE)

    assert mutating["kind"] == "MutatingWebhookConfiguration"
    assert mutating["metadata"] == {"name": "mutating-webhook-configuration"}
    assert [webhook["name"] for webhook in mutating["webhooks"]] == [
        "default.v1.cache.shop.example.io",
        "inject.v1.pod.core",
    ]
    assert validating["kind"] == "ValidatingWebhookConfiguration"
    assert len(validating["webhooks"]) == 1


def test_what_would_be_empty_is_left_out() -> None:
    (only,) = webhook_configurations([validate_cache], service=SERVICE, name="shop", labels={"a": "b"})

    assert only["metadata"] == {"name": "shop-validating-webhook-configuration", "labels": {"a": "b"}}
    assert webhook_configurations([up], service=SERVICE) == []


def test_the_defaults_are_the_safe_ones() -> None:
    ((webhook,),) = (tree["webhooks"] for tree in webhook_configurations([default_cache], service=SERVICE))

    assert webhook == {
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {
                "name": "hooks",
                "namespace": "shop-system",
                "path": "/mutate-shop-example-io-v1-cache",
                "port": 443,
            }
        },
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "name": "default.v1.cache.shop.example.io",
        "namespaceSelector": {
            "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["shop-system"]}]
        },
        "reinvocationPolicy": "Never",
        "rules": [
            {
                "apiGroups": ["shop.example.io"],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["caches"],
                "scope": "Namespaced",
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": 5,
    }


def test_what_was_asked_for_is_there() -> None:
    trees = webhook_configurations([inject, validate_cache], service=SERVICE)
    pods, caches = (tree["webhooks"][0] for tree in trees)

    assert pods["failurePolicy"] == "Ignore"
    assert pods["reinvocationPolicy"] == "IfNeeded"
    assert pods["objectSelector"] == {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    assert pods["namespaceSelector"]["matchLabels"] == {"inject": "yes"}
    assert pods["namespaceSelector"]["matchExpressions"][0]["values"] == ["shop-system"]
    assert pods["rules"][0]["resources"] == ["pods", "pods/ephemeralcontainers"]
    assert "reinvocationPolicy" not in caches
    assert caches["matchConditions"] == [{"name": "small", "expression": "object.spec.size < 9"}]
    assert caches["timeoutSeconds"] == 9


def test_a_cluster_scoped_kind_has_its_scope() -> None:
    @validate(Namespace)
    def validate_namespace(namespace: Namespace) -> None:
        """Nothing is wrong with any."""

    (tree,) = webhook_configurations([validate_namespace], service=SERVICE)

    assert tree["webhooks"][0]["rules"][0]["scope"] == "Cluster"


def test_a_url_excludes_no_namespace_unless_told() -> None:
    (plain,) = webhook_configurations([validate_cache], url="https://10.0.0.7:9443/", ca_bundle=b"PEM")
    (told,) = webhook_configurations([validate_cache], url="https://10.0.0.7:9443", exclude_namespaces=["b", "a"])

    assert plain["webhooks"][0]["clientConfig"] == {
        "caBundle": base64.b64encode(b"PEM").decode(),
        "url": "https://10.0.0.7:9443/validate-shop-example-io-v1-cache",
    }
    assert "namespaceSelector" not in plain["webhooks"][0]
    assert told["webhooks"][0]["namespaceSelector"]["matchExpressions"][0]["values"] == ["a", "b"]


def test_conversion_goes_to_its_own_path() -> None:
    assert conversion_stanza(service=SERVICE) == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": {"name": "hooks", "namespace": "shop-system", "path": "/convert", "port": 443}},
            "conversionReviewVersions": ["v1"],
        },
    }
    assert converted_crds([up, default_cache]) == ("caches.shop.example.io",)


def test_the_certificate_has_the_name_the_api_server_asks_for() -> None:
    assert SERVICE.hosts[0] == "hooks.shop-system.svc"


def test_misuse_is_explained() -> None:
    with pytest.raises(ConfigError, match="give one of the two"):
        webhook_configurations([validate_cache])
    with pytest.raises(ConfigError, match="give one of the two"):
        webhook_configurations([validate_cache], service=SERVICE, url="https://10.0.0.7")
    with pytest.raises(ConfigError, match="does not begin with https://"):
        webhook_configurations([validate_cache], url="http://10.0.0.7")
    with pytest.raises(ConfigError, match=r"tell them apart with name="):
        webhook_configurations([validate_cache, validate_cache], service=SERVICE)
    with pytest.raises(ConfigError, match="not between 1 and 65535"):
        ServiceReference(port=0)
    with pytest.raises(ConfigError, match="has a bad name"):
        ServiceReference(name="Hooks")
