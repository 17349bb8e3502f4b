"""Which registrations are known to be dead, and a manager without webhooks that looks for them once."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from kubewright import Client
from kubewright._base.tasks import cancel_and_wait
from kubewright.api import DynamicObject
from kubewright.api.codec import encode_tree
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.testing.clock import VirtualClock
from kubewright.webhooks.certificates.local import LocalCertificates
from kubewright.webhooks.registration.local_processes import DeadWebhooks, has_ended, marks
from kubewright.webhooks.registration.targets import VALIDATING
from kubewright.webhooks.serving.router import WebhookRouter
from kubewright.webhooks.serving.server import WebhookServer

HERE = socket.gethostname()


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[WebhookServer]:
    found = WebhookServer(WebhookRouter(), LocalCertificates(["127.0.0.1"], name="shop"), host="127.0.0.1", port=0)
    found.open()
    serving = asyncio.create_task(found.run())
    await found.wait_ready()
    yield found
    await cancel_and_wait(serving)


@pytest.fixture
def closed() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def registered(port: int, *, process: str = "", bundle: bytes = b"") -> DynamicObject:
    url = f"https://127.0.0.1:{port}"
    config = {"url": f"{url}/check", "caBundle": base64.b64encode(bundle).decode()}
    made = VALIDATING.named("shop", content={"webhooks": [{"name": "check", "clientConfig": config}]})
    made.metadata.annotations.update(marks(url))
    if process:
        made.metadata.annotations["kubewright.io/local-process"] = process
    return made


async def test_a_process_that_serves_its_webhooks_is_alive(server: WebhookServer) -> None:
    assert isinstance(server.certificates, LocalCertificates)
    bundle = server.certificates.bundle

    assert not await has_ended(registered(server.port, bundle=bundle))
    assert await has_ended(registered(server.port, bundle=bundle), url=f"https://127.0.0.1:{server.port}")


async def test_a_process_whose_id_another_one_has_now_is_dead(server: WebhookServer, closed: int) -> None:
    another = LocalCertificates(["127.0.0.1"], name="another").bundle

    assert await has_ended(registered(closed, process=f"{HERE}/{os.getpid()}"))
    assert await has_ended(registered(server.port, process=f"{HERE}/{os.getpid()}", bundle=another))


async def test_of_another_machine_nothing_is_known(closed: int) -> None:
    assert not await has_ended(registered(closed, process="another-machine/1"))


class Lists:
    """A server that answers the first lists with a status, and then with nothing."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.asked: list[str] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.asked.append(request.path)
        code = self.codes.pop(0) if self.codes else 200
        tree: dict[str, Any] = {"metadata": {"resourceVersion": "1"}, "items": []}
        if code != 200:
            tree = {"kind": "Status", "reason": "Forbidden" if code == 403 else "InternalError", "code": code}
        return HttpResponse(status=code, headers={"content-type": "application/json"}, body=encode_tree(tree))

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        raise NotImplementedError

    async def close(self) -> None: ...


async def test_who_may_not_see_registrations_goes_on_without() -> None:
    server = Lists(403)
    dead = DeadWebhooks(Client(server), clock=VirtualClock())

    await dead.run()
    await dead.wait_ready()

    assert len(server.asked) == 1


async def test_a_server_that_fails_is_asked_again_and_holds_up_nobody() -> None:
    server, clock = Lists(500, 500), VirtualClock()
    dead = DeadWebhooks(Client(server), clock=clock)
    running = asyncio.create_task(dead.run())

    await dead.wait_ready()
    assert len(server.asked) == 1
    await clock.advance(60)
    await running

    assert len(server.asked) == 2 + 3  # two failures, and then all three kinds
