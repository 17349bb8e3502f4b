"""Every class of the error tree, as a server really causes it.

Covers: kubewright.apiserver.wire, kubewright.errors
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.builders.pods import pod

from kubewright import Client, Config, Dynamic, ObjectMeta, connect
from kubewright.client.transport.aiohttp_transport import AiohttpTransport
from kubewright.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    ServerError,
    ServerTimeout,
    ServiceUnavailable,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
)
from kubewright.k8s.core.v1 import ConfigMap, Pod, PodCondition, PodSpec
from kubewright.k8s.meta.v1 import LabelSelector
from kubewright.k8s.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec
from kubewright.testing import time_limit


@pytest.fixture
async def impatient(plane: Any) -> AsyncIterator[Client]:
    """A client without retries, for answers the other one would wait on."""
    async with Client(AiohttpTransport(Config.load(kubeconfig=plane.kubeconfig)), field_manager="test") as client:
        yield client


async def test_bad_request(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"

    with pytest.raises(BadRequest) as caught:
        await client.request("POST", path, body=b"{not json")

    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


async def test_unauthorized(plane: Any) -> None:
    config = Config.from_dict(kubeconfig_with_token(plane, "a-token-nobody-issued"), Path())

    async with connect(config) as foreign:
        with pytest.raises(Unauthorized) as caught:
            await foreign.get(ConfigMap, "a", namespace="default")

    assert (caught.value.code, caught.value.reason) == (401, "Unauthorized")


async def test_forbidden_names_user_verb_and_resource(plane: Any) -> None:
    async with connect(kubeconfig=await plane.user("nobody-special")) as foreign:
        with pytest.raises(Forbidden) as caught:
            await foreign.list(ConfigMap, namespace="default")

    assert caught.value.message == (
        'configmaps is forbidden: User "nobody-special" cannot list resource "configmaps" '
        'in API group "" in the namespace "default"'
    )


async def test_not_found_for_an_object_and_for_a_path(client: Client) -> None:
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "nobody", namespace="default")
    with pytest.raises(NotFound):
        await client.request("GET", "/apis/nobody.example.io/v1/things")


async def test_method_not_allowed(client: Client, namespace: str) -> None:
    with pytest.raises(MethodNotAllowed) as caught:
        await client.request("PUT", f"/api/v1/namespaces/{namespace}/configmaps", body=b"{}")

    assert caught.value.code == 405


async def test_not_acceptable(client: Client, namespace: str) -> None:
    with pytest.raises(NotAcceptable):
        await client.request("GET", f"/api/v1/namespaces/{namespace}/configmaps", accept="application/xml")


async def test_already_exists_and_conflict_are_told_apart(client: Client, namespace: str) -> None:
    created = await client.create(ConfigMap.named("a", namespace))
    with pytest.raises(AlreadyExists):
        await client.create(ConfigMap.named("a", namespace))

    with pytest.raises(Conflict):
        await client.delete(created, resource_version="1")


async def test_expired(plane: Any, client: Client) -> None:
    await plane.compact()

    with pytest.raises(Expired) as caught:
        # Events are the one kind that is watched in etcd itself, which has just forgotten its past.
        async with client.watch(Dynamic("v1", "Event"), resource_version="1") as events:
            await anext(events)

    assert (caught.value.code, caught.value.reason) == (410, "Expired")


async def test_too_large(client: Client, namespace: str) -> None:
    with pytest.raises(TooLarge) as caught:
        await client.create(ConfigMap.named("a", namespace, data={"k": "x" * (3 * 1024 * 1024 + 1)}))

    assert caught.value.code == 413


async def test_unsupported_media_type(client: Client, namespace: str) -> None:
    await client.create(ConfigMap.named("a", namespace))

    path = f"/api/v1/namespaces/{namespace}/configmaps/a"

    with pytest.raises(UnsupportedMediaType):
        await client.request("PATCH", path, body=b"{}", content_type="text/plain")


async def test_invalid_has_a_cause_for_each_field(client: Client, namespace: str) -> None:
    wrong = Pod.named("Not_A_Name", namespace, spec=PodSpec(containers=[]))

    with pytest.raises(Invalid) as caught:
        await client.create(wrong)

    causes = {(cause.field, cause.reason) for cause in caught.value.causes}
    assert ("metadata.name", "FieldValueInvalid") in causes
    assert ("spec.containers", "FieldValueRequired") in causes


async def test_too_many_requests_while_a_disruption_budget_forbids_an_eviction(
    impatient: Client, namespace: str
) -> None:
    labels = {"app": "guarded"}
    budget = PodDisruptionBudgetSpec(min_available=1, selector=LabelSelector(match_labels=labels))
    await impatient.create(PodDisruptionBudget.named("guard", namespace, spec=budget))
    guarded = await impatient.create(pod("p", namespace, labels=labels, nodeName="nowhere"))
    guarded.status.phase = "Running"
    guarded.status.conditions = [PodCondition(type="Ready", status="True")]
    await impatient.patch(guarded, subresource="status")

    with pytest.raises(TooManyRequests) as caught:
        await impatient.pods.evict(guarded.key)

    assert caught.value.code == 429
    await impatient.delete(Pod, guarded.key, grace_period=0)


async def test_server_error_when_a_webhook_cannot_be_reached(client: Client, namespace: str) -> None:
    kind = Dynamic("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
    hook = {
        "name": "unreachable.example.io",
        "clientConfig": {"url": "https://127.0.0.1:1/validate"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
    }
    await client.create(kind.named(f"unreachable-{namespace}", content={"webhooks": [hook]}))
    try:
        with pytest.raises(ServerError) as caught:
            await create_until_refused(client, namespace)
    finally:
        await client.delete(kind, f"unreachable-{namespace}")

    assert (caught.value.code, caught.value.reason) == (500, "InternalError")
    assert "unreachable.example.io" in caught.value.message


async def create_until_refused(client: Client, namespace: str) -> None:
    """The server learns of a webhook through its own watch, so the first creates may still pass."""
    async with time_limit(30):
        while True:
            await client.create(ConfigMap(metadata=ObjectMeta(generate_name="c-", namespace=namespace)))


async def test_service_unavailable_when_an_aggregated_server_is_away(impatient: Client) -> None:
    kind = Dynamic("apiregistration.k8s.io/v1", "APIService")
    spec = {
        "group": "away.example.io",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "insecureSkipTLSVerify": True,
        "service": {"name": "away", "namespace": "default"},
    }
    await impatient.create(kind.named("v1.away.example.io", content={"spec": spec}))
    try:
        caught: ApiError | None = None
        while not isinstance(caught, ServiceUnavailable):  # 404 until the server has taken the new group in
            with pytest.raises(ApiError) as answer:
                await impatient.request("GET", "/apis/away.example.io/v1/things")
            caught = answer.value
    finally:
        await impatient.delete(kind, "v1.away.example.io")

    assert caught.code == 503


async def test_server_timeout_for_a_version_from_the_future(impatient: Client, namespace: str) -> None:
    with pytest.raises(ServerTimeout) as caught:
        await impatient.get(ConfigMap, "a", namespace=namespace, resource_version="9999999999")

    assert caught.value.code == 504
    assert caught.value.retry_after is not None


async def test_every_class_of_the_tree_is_covered_here() -> None:
    source = set(globals())
    classes: set[type[ApiError]] = set()
    pending = [ApiError]
    while pending:
        for child in pending.pop().__subclasses__():
            classes.add(child)
            pending.append(child)

    assert {kind.__name__ for kind in classes} <= source


def kubeconfig_with_token(plane: Any, token: str) -> dict[str, Any]:
    authority = base64.b64encode(plane.ca_data).decode()
    return {
        "clusters": [{"name": "c", "cluster": {"server": plane.url, "certificate-authority-data": authority}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
