"""A webhook that can be called answers something; what is known of one that cannot says whether the server can."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from kubewright import Client
from kubewright._base.tasks import cancel_and_wait
from kubewright.api.codec import encode_tree
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.webhooks.certificates.local import LocalCertificates
from kubewright.webhooks.registration.calls import CallProblem, WebhookCall, calls_of
from kubewright.webhooks.registration.targets import CRD, VALIDATING
from kubewright.webhooks.serving.router import WebhookRouter
from kubewright.webhooks.serving.server import WebhookServer


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[WebhookServer]:
    found = WebhookServer(WebhookRouter(), LocalCertificates(["127.0.0.1"], name="shop"), host="127.0.0.1", port=0)
    found.open()
    serving = asyncio.create_task(found.run())
    await found.wait_ready()
    yield found
    await cancel_and_wait(serving)


def to(url: str, bundle: bytes = b"") -> WebhookCall:
    return WebhookCall(name="check", config={"url": url, "caBundle": base64.b64encode(bundle).decode()})


async def test_any_answer_proves_that_somebody_serves_it(server: WebhookServer) -> None:
    assert isinstance(server.certificates, LocalCertificates)
    assert await to(f"https://127.0.0.1:{server.port}/check", server.certificates.bundle).problem() is None


async def test_another_that_answers_at_the_address_is_told_apart(server: WebhookServer) -> None:
    other = LocalCertificates(["127.0.0.1"], name="other").bundle

    problem = await to(f"https://127.0.0.1:{server.port}/check", other).problem()

    assert problem is not None
    assert problem.certain
    assert problem.text.startswith("who answers is not who its caBundle is for: ")


async def test_a_port_that_nobody_listens_on_is_certain(server: WebhookServer) -> None:
    closed = WebhookServer(WebhookRouter(), host="127.0.0.1", port=0)
    closed.open()
    port = closed.port
    closed.close()

    assert await to(f"https://127.0.0.1:{port}/check").problem() == CallProblem("nobody listens there", certain=True)


async def test_one_that_does_not_answer_may_be_reached_on_another_way() -> None:
    problem = await to("https://nowhere.invalid/check").problem()
    assert problem is not None
    assert not problem.certain

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        late = await to(f"https://127.0.0.1:{port}/check").problem(timeout=0.05)
    assert late == CallProblem("no answer within 0.05 s", certain=False)


async def test_a_bundle_that_is_no_certificate_is_certain() -> None:
    config = {"url": "https://127.0.0.1:9/check", "caBundle": base64.b64encode(b"\xff").decode()}
    assert await WebhookCall(name="check", config=config).problem() == CallProblem(
        "its caBundle is no certificate", certain=True
    )


class Proxy:
    """An API server that answers a proxied request."""

    def __init__(self, code: int, tree: dict[str, Any] | None = None) -> None:
        self.code, self.tree = code, tree
        self.paths: list[str] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.paths.append(request.path)
        return HttpResponse(
            status=self.code,
            headers={"content-type": "application/json"},
            body=b"what" if self.tree is None else encode_tree({"kind": "Status", "apiVersion": "v1", **self.tree}),
        )

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        raise NotImplementedError

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("code", "tree", "problem"),
    [
        (200, None, None),
        (405, None, None),
        (404, None, None),
        (404, {"reason": "NotFound", "message": "no hooks", "details": {"kind": "services"}}, ("no hooks", True)),
        (503, {"reason": "ServiceUnavailable", "message": "no endpoints"}, ("no endpoints", True)),
        (403, {"reason": "Forbidden", "message": "you may not"}, ("you may not", False)),
    ],
)
async def test_a_service_is_called_through_the_api_server(
    code: int, tree: dict[str, Any] | None, problem: tuple[str, bool] | None
) -> None:
    server = Proxy(code, tree)
    service = {"namespace": "shop-system", "name": "hooks", "path": "/check"}

    answer = await WebhookCall(name="check", config={"service": service}).problem(Client(server))

    assert answer == (None if problem is None else CallProblem(problem[0], certain=problem[1]))
    assert server.paths == ["/api/v1/namespaces/shop-system/services/https:hooks:443/proxy/check"]


def test_the_webhooks_of_an_object_are_found() -> None:
    url = {"url": "https://127.0.0.1:9/"}
    webhooks = [{"name": "a", "clientConfig": url, "failurePolicy": "Ignore"}, {"name": "b", "clientConfig": url}]
    crd = {"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": url}}}}

    found = [*calls_of(VALIDATING.named("hooks", content={"webhooks": webhooks}))]
    converted = [*calls_of(CRD.named("things", content=crd)), *calls_of(CRD.named("others", content={"spec": {}}))]

    assert [(call.name, call.ignored, call.target) for call in found] == [
        ("a", True, "https://127.0.0.1:9/"), ("b", False, "https://127.0.0.1:9/"),
    ]  # fmt: skip
    assert [call.name for call in converted] == ["the conversion of things"]
