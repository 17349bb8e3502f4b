"""What somebody without log-in can make the webhook server read and decode.

Covers: kubewright.webhooks.serving, kubewright.webhooks.conversion
"""

from __future__ import annotations

import json

import pytest
from tests.security.spending import spending
from tests.unit.webhooks.serving.test_server import StaticSource, calling, check, pair, running

from kubewright._base.http.messages import Request
from kubewright.errors import DecodeError
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.testing import time_limit
from kubewright.webhooks import validate
from kubewright.webhooks.conversion.handler import ConversionHandler
from kubewright.webhooks.serving.router import WebhookRouter
from kubewright.webhooks.serving.server import BODY_LIMIT, CONVERSION_LIMIT, WebhookServer

MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("line", "content_type", "code"),
    [
        ("POST /convert", "application/json", 404),
        ("POST /elsewhere", "application/json", 404),
        (f"PUT {check.path}", "application/json", 405),
        (f"POST {check.path}", "text/plain", 415),
    ],
)
async def test_a_body_that_no_webhook_takes_is_not_read(line: str, content_type: str, code: int) -> None:
    head = f"{line} HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\nContent-Length: {6 * MEBIBYTE}\r\n\r\n"
    async with running(StaticSource(pair("first"))) as server:
        await server.wait_ready()
        async with calling(server) as caller, time_limit(60):
            caller.writer.write(head.encode())
            answer = await caller.reader.read()

    assert answer.startswith(f"HTTP/1.1 {code} ".encode())


def test_all_bodies_together_leave_room_in_a_small_pod() -> None:
    server = WebhookServer(WebhookRouter())

    assert max(BODY_LIMIT, CONVERSION_LIMIT) <= server._http.limits.held_bytes <= 64 * MEBIBYTE
    assert server._http.limits.connections <= 256


@pytest.mark.parametrize("filler", [b"{}", b"[]", b"1", b'{"kind":"A"}'])
async def test_a_list_of_what_is_no_object_is_refused_before_it_is_in_memory(filler: bytes) -> None:
    objects = b",".join([filler] * (8 * MEBIBYTE // len(filler)))
    body = b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",'
    body += b'"request":{"uid":"1","desiredAPIVersion":"a/v1","objects":[' + objects + b"]}}"

    with spending() as spent, pytest.raises(DecodeError):
        await ConversionHandler().handle(body)

    assert spent.bytes < 10 * MEBIBYTE


async def test_an_object_that_no_api_server_stores_is_not_decoded() -> None:
    large = b'{"apiVersion":"a/v1","kind":"A","x":[' + b",".join([b"[]"] * (2 * MEBIBYTE)) + b"]}"
    body = b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",'
    body += b'"request":{"uid":"1","desiredAPIVersion":"a/v1","objects":[' + large + b"]}}"

    with spending() as spent:
        answer = json.loads(await ConversionHandler().handle(body))

    assert answer["response"]["result"]["message"] == "an object has 6291494 bytes; the limit is 3145728"
    assert spent.bytes < 10 * MEBIBYTE


async def test_an_object_of_very_many_values_is_not_converted() -> None:
    wide = b'{"apiVersion":"a/v1","kind":"A","x":[' + b",".join([b"{}"] * 200_000) + b"]}"
    body = b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",'
    body += b'"request":{"uid":"1","desiredAPIVersion":"a/v1","objects":[' + wide + b"]}}"

    with spending() as spent:
        answer = json.loads(await ConversionHandler().handle(body))

    assert answer["response"]["result"]["message"] == "an object has more than 100000 values"
    assert spent.bytes < 5 * MEBIBYTE


def review(tree: bytes) -> bytes:
    head = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"",'
    return head + b'"version":"v1","kind":"ConfigMap"},"operation":"CREATE","object":' + tree + b"}}"


@pytest.mark.parametrize(
    "tree",
    [
        b'{"metadata":{"ownerReferences":[' + b",".join([b"{}"] * 900_000) + b"]}}",
        b'{"data":{' + b",".join(b'"%d":""' % n for n in range(230_000)) + b"}}",
    ],
    ids=["owners", "fields"],
)
async def test_a_review_that_takes_too_much_memory_is_refused(tree: bytes) -> None:
    @validate(ConfigMap)
    def check(config_map: ConfigMap) -> None:
        raise AssertionError("it is not called")

    headers = {"content-type": "application/json"}
    request = Request(method="POST", target="/validate--v1-configmap", headers=headers, body=review(tree))
    with spending() as spent:
        answer = await WebhookRouter([check]).handle(request)

    assert (answer.code, answer.body) == (413, b"the body has more than 150000 values\n")
    assert spent.bytes < 5 * MEBIBYTE
