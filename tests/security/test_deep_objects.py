"""An object that is nested as deep as an API server takes it is an object like others to an operator.

kube-apiserver takes ten thousand levels where a schema preserves unknown fields. Who may create one such object must
not be able to keep an operator from all others of its kind. The embedded server takes 250 levels.

Covers: kubewright._base.deep_json, kubewright.client, kubewright.cache, kubewright.webhooks
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from tests.builders.definitions import definition_tree
from tests.planes import Plane
from tests.security.callers import caller

from kubewright import Client, Resource, Spec, Status, convert, validate
from kubewright._base.deep_json import deeply
from kubewright._base.http.messages import Request
from kubewright.api.codec import decode_stored, decode_tree
from kubewright.api.resource import definition_of
from kubewright.cache.decoder import EventDecoder, ObjectEvent
from kubewright.cache.scope import Scope
from kubewright.client.lists import decode_list
from kubewright.errors import BadRequest, DecodeError
from kubewright.k8s.apiextensions.v1 import CustomResourceDefinition
from kubewright.testing import time_limit, until
from kubewright.webhooks.serving.router import WebhookRouter

GROUP = "deep.example.io"
DEEP = 9_000


class ThingSpec(Spec):
    size: int = 0


class OldThing(Resource[ThingSpec, Status], group=GROUP, version="v1alpha1", kind="Thing"):
    """The first version."""


class Thing(Resource[ThingSpec, Status], group=GROUP, version="v1"):
    """The hub."""


@convert(OldThing, Thing)
def to_hub(old: OldThing) -> Thing:
    return Thing(spec=ThingSpec(size=old.spec.size))


@convert(Thing, OldThing)
def from_hub(thing: Thing) -> OldThing:
    return OldThing(spec=ThingSpec(size=thing.spec.size))


@validate(Thing)
def check(thing: Thing) -> None:
    """Everything is fine."""


def thing(name: str, levels: int, *, version: str = "v1") -> bytes:
    inner = "[" * levels + "]" * levels
    meta = f'{{"name": "{name}", "namespace": "shop", "uid": "u-{name}", "resourceVersion": "7"}}'
    spec = f'{{"size": 1, "unknown": {inner}}}'
    return f'{{"apiVersion": "{GROUP}/{version}", "kind": "Thing", "metadata": {meta}, "spec": {spec}}}'.encode()


def test_a_list_with_a_deep_object_is_read() -> None:
    data = b'{"metadata": {}, "items": [%b, %b]}' % (thing("deep", DEEP), thing("flat", 1))

    found = decode_list(Thing, data)

    assert [(item.metadata.name, item.spec.size) for item in found] == [("deep", 1), ("flat", 1)]


def test_a_deep_object_is_stored_by_an_informer() -> None:
    decoder = EventDecoder(definition_of(Thing), Scope())

    event = decoder.decode_event(b'{"type":"ADDED","object":%b}' % thing("deep", DEEP))

    assert isinstance(event, ObjectEvent)
    assert decode_stored(Thing, event.entry.data).spec.size == 1


def test_what_is_deeper_than_any_server_takes_is_an_error_as_any_other() -> None:
    with pytest.raises(DecodeError, match="nested too deep"):
        decode_tree(b"[" * 100_000 + b"]" * 100_000)


def test_the_recursion_limit_of_the_process_stays() -> None:
    before = sys.getrecursionlimit()
    decode_tree(b"[" * DEEP + b"]" * DEEP)
    with pytest.raises(ZeroDivisionError):
        deeply(lambda: 1 // 0)

    assert sys.getrecursionlimit() == before


async def test_a_deep_object_keeps_no_other_from_being_converted() -> None:
    objects = b",".join([thing("deep", DEEP, version="v1alpha1"), thing("flat", 1, version="v1alpha1")])
    body = (
        b'{"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": {"uid": "u",'
        b' "desiredAPIVersion": "%b/v1", "objects": [%b]}}' % (GROUP.encode(), objects)
    )
    router = WebhookRouter([to_hub, from_hub])

    answer = await router.handle(_post("/convert", body))
    review = decode_tree(answer.body)

    assert review["response"]["result"] == {"status": "Success"}
    names = [item["metadata"]["name"] for item in review["response"]["convertedObjects"]]
    assert names == ["deep", "flat"]


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
async def test_a_webhook_answers_a_deep_object_with_a_review(operation: str) -> None:
    request = {
        "uid": "u",
        "kind": {"group": GROUP, "version": "v1", "kind": "Thing"},
        "resource": {"group": GROUP, "version": "v1", "resource": "things"},
        "operation": operation,
        "name": "deep",
        "namespace": "shop",
        "userInfo": {"username": "user"},
    }
    old = thing("deep", DEEP - 1) if operation == "UPDATE" else b"null"
    body = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":%b,"object":%b,"oldObject":%b}}' % (
        json.dumps(request).encode()[:-1],
        thing("deep", DEEP),
        old,
    )
    router = WebhookRouter([check])

    answer = await router.handle(_post(router.paths[0], body))

    assert answer.code == 200
    assert json.loads(answer.body)["response"]["uid"] == "u"


def _post(path: str, body: bytes) -> Request:
    return Request(method="POST", target=path, headers={"content-type": "application/json"}, body=body)


async def test_one_deep_object_hides_no_others(plane: Plane, client: Client, namespace: str) -> None:
    schema: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    admin = await caller(plane, "deep", "system:masters")
    tree = definition_tree("things", GROUP, kind="Thing", schema=schema)
    assert (await admin.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", tree)).code == 201
    await until(client, CustomResourceDefinition, f"things.{GROUP}", is_established)
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/things"
    async with time_limit(60):
        while (await admin.send("GET", path)).code != 200:
            pass  # a kube-apiserver needs a moment
    refused = 0
    for name, levels in (("flat", 1), ("deep", DEEP)):
        body = json.loads(thing(name, 1))
        body["metadata"] = {"name": name}
        sent = json.dumps(body).replace("[]", "[" * levels + "]" * levels).encode()
        try:
            await client.request("POST", path, body=sent)
        except BadRequest:
            refused += 1

    found = {item.metadata.name for item in await client.list(Thing, namespace=namespace)}
    seen: set[str] = set()
    async with client.watch(Thing, namespace=namespace, initial_events=True) as events:
        while seen != found:
            event = await anext(events)
            seen.add(event.object.metadata.name)
    await admin.send("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{GROUP}")

    assert (refused, found) in ((0, {"flat", "deep"}), (1, {"flat"}))


def is_established(definition: CustomResourceDefinition) -> bool:
    conditions = definition.status.conditions or ()
    return any((one.type, one.status) == ("Established", "True") for one in conditions)
