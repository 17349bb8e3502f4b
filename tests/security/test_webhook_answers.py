"""What a webhook of somebody else answers is believed as far as kube-apiserver believes it, and no further.

Covers: kubewright.apiserver.admission.webhooks, kubewright.apiserver.apiextensions.webhook_converter
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
from tests.builders.definitions import definition_tree, version_tree
from tests.planes import Plane
from tests.security.callers import Answer, Caller, caller
from tests.stub_server import ReceivedRequest, StubResponse, StubServer

from kubewright import Client
from kubewright.k8s.apiextensions.v1 import CustomResourceDefinition
from kubewright.testing import time_limit, until

Tree = dict[str, Any]
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
STATUSES: list[Tree] = [
    {"status": {"message": 5}},
    {"status": {"code": "500"}},
    {"status": {"reason": {}}},
    {"status": {"details": {"causes": [5]}}},
    {"warnings": [5]},
    {"auditAnnotations": {"a": 5}},
]


@pytest.fixture
async def stub() -> AsyncIterator[StubServer]:
    async with StubServer() as server:
        yield server


@pytest.fixture
async def admin(plane: Plane) -> Caller:
    return await caller(plane, "hooks", "system:masters")


async def registered(admin: Caller, stub: StubServer, namespace: str) -> None:
    """Have the stub asked about the config maps of a namespace, and return once it is."""
    stub.handlers["/"] = lambda received: admission(received, {"allowed": False, "status": {"message": "it is asked"}})
    hook = {
        "name": "webhook.example.io",
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "clientConfig": {"url": f"{stub.url}/mutate", "caBundle": stub.bundle},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    answer = await admin.send("POST", HOOKS, {"metadata": {"name": namespace}, "webhooks": [hook]})
    assert answer.code == 201, answer.message
    async with time_limit(60):
        while (await created(admin, namespace, "probe", query="?dryRun=All")).code == 201:
            pass  # a kube-apiserver needs a moment


async def created(admin: Caller, namespace: str, name: str, *, query: str = "") -> Answer:
    return await admin.send("POST", f"/api/v1/namespaces/{namespace}/configmaps{query}", {"metadata": {"name": name}})


def admission(received: ReceivedRequest, response: Tree) -> StubResponse:
    uid = received.tree["request"]["uid"]
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": {"uid": uid, **response}}
    return StubResponse(review)


async def test_an_answer_of_other_types_is_none(plane: Plane, admin: Caller, stub: StubServer, namespace: str) -> None:
    """The failure policy decides: what is not understood is not taken for consent."""
    await registered(admin, stub, namespace)
    answers = []
    for number, status in enumerate(STATUSES):
        stub.handlers["/"] = partial(admission, response={"allowed": True, **status})
        answers.append(await created(admin, namespace, f"map-{number}"))
    await admin.send("DELETE", f"{HOOKS}/{namespace}")

    assert [answer.code for answer in answers] == [500] * len(STATUSES)
    called = 'Internal error occurred: failed calling webhook "webhook.example.io": failed to call webhook: json: '
    assert all(answer.message.startswith(f"{called}cannot unmarshal ") for answer in answers)


@pytest.mark.parametrize("plane", ["embedded"], indirect=True)
async def test_a_denial_has_a_code_that_is_one(plane: Plane, admin: Caller, stub: StubServer, namespace: str) -> None:
    """kube-apiserver breaks the connection off instead."""
    await registered(admin, stub, namespace)
    stub.handlers["/"] = lambda received: admission(received, {"allowed": False, "status": {"code": 1_000_000}})
    answer = await created(admin, namespace, "denied")
    await admin.send("DELETE", f"{HOOKS}/{namespace}")

    assert (answer.code, answer.body["code"]) == (400, 400)


# conversions


@pytest.fixture
async def things(plane: Plane, client: Client, admin: Caller, stub: StubServer, namespace: str) -> AsyncIterator[str]:
    """The path of a custom resource without its version, which the stub converts: `test_...` sets what it changes."""
    group = f"{namespace}.example.io"
    versions = [{**version_tree(name, schema=ANY), "storage": name == "v1"} for name in ("v1", "v2")]
    webhook = {"clientConfig": {"url": f"{stub.url}/convert", "caBundle": stub.bundle}}
    tree = definition_tree(
        "things",
        group,
        kind="Thing",
        versions=versions,
        conversion={"strategy": "Webhook", "webhook": {**webhook, "conversionReviewVersions": ["v1"]}},
    )
    answer = await admin.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", tree)
    assert answer.code == 201, answer.message
    await until(client, CustomResourceDefinition, f"things.{group}", is_established)
    async with time_limit(60):
        while (await admin.send("GET", f"/apis/{group}/v1/namespaces/{namespace}/things")).code != 200:
            pass  # a kube-apiserver needs a moment
    yield f"/apis/{group}/{{version}}/namespaces/{namespace}/things"
    await admin.send("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{group}")


def is_established(definition: CustomResourceDefinition) -> bool:
    conditions = definition.status.conditions or ()
    return any((one.type, one.status) == ("Established", "True") for one in conditions)


def conversion(received: ReceivedRequest, change: Callable[[Tree], None], result: Any) -> StubResponse:
    request = received.tree["request"]
    for item in request["objects"]:
        item["apiVersion"] = request["desiredAPIVersion"]
        change(item)
    response = {"uid": request["uid"], "result": result, "convertedObjects": request["objects"]}
    return StubResponse({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response})


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("labels", [1], "invalid metadata.labels of type []interface {} in converted object"),
        ("labels", "a", "invalid metadata.labels of type string in converted object"),
        ("labels", {"a": 1}, "metadata.labels[a] must be a string, but is int64 in converted object"),
        ("labels", {"a b": "c"}, 'metadata.labels: Invalid value: "a b": name part must consist of'),
        ("annotations", {"a": None}, "metadata.annotations[a] must be a string, but is <nil> in converted object"),
        ("annotations", {"a": "x" * 300_000}, "metadata.annotation"),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_a_conversion_writes_no_labels_that_are_none(
    admin: Caller, stub: StubServer, things: str, field: str, value: Any, error: str
) -> None:
    """They would be stored, and each list with a selector would fail from then on, for everybody."""
    group = things.split("/")[2]
    stub.handlers["/"] = lambda received: conversion(
        received, lambda item: item["metadata"].update({field: value}), {"status": "Success"}
    )
    written = await admin.send(
        "POST",
        things.format(version="v2"),
        {"apiVersion": f"{group}/v2", "kind": "Thing", "metadata": {"name": "poisoned", "labels": {"a": "b"}}},
    )
    listed = await admin.send("GET", things.format(version="v1") + "?labelSelector=a%3Db")

    assert written.code == 500
    where = f"conversion webhook for {group}/v2, Kind=Thing returned invalid metadata: "
    assert written.message.startswith(f"{where}{error}")
    assert (listed.code, listed.body["items"]) == (200, [])


@pytest.mark.parametrize("result", [5, "Success", ["Success"], {"status": "Success", "message": 5}], ids=str)
async def test_a_conversion_without_a_status_has_failed(
    admin: Caller, stub: StubServer, things: str, result: Any
) -> None:
    group = things.split("/")[2]
    stub.handlers["/"] = lambda received: conversion(received, lambda item: None, result)
    written = await admin.send(
        "POST",
        things.format(version="v2"),
        {"apiVersion": f"{group}/v2", "kind": "Thing", "metadata": {"name": "unknown"}},
    )

    assert written.code == 500
    assert written.message.startswith(f"conversion webhook for {group}/v2, Kind=Thing failed: json: cannot unmarshal ")
