"""Webhooks in a manager: on, off, where their certificates come from, and in which order they come and go."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kubewright import Client, Manager, ManagerOptions, Resource, Spec, Status, validate
from kubewright._base.certificates import Authority
from kubewright.cache import CacheReader
from kubewright.client.transport.transport import HttpRequest
from kubewright.errors import ConfigError, KubewrightError
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.manager import webhook_certificates as module
from kubewright.manager.webhooks import ServedWebhooks
from kubewright.webhooks.serving.router import WebhookRouter
from kubewright.webhooks.serving.server import WebhookServer

AUTHORITY = Authority.create("manager tests")
PAIR = AUTHORITY.server("webhooks", hosts=("127.0.0.1",))


class Web(Resource[Spec, Status], group="shop.example.io", version="v1"):
    """A web site."""


@validate(Web)
def check(web: Web) -> None: ...


class UnusedTransport:
    """A transport to a server that nobody asks."""

    async def send(self, request: HttpRequest) -> Any:
        raise AssertionError(f"nobody should ask {request}")

    def stream(self, request: HttpRequest) -> Any:
        raise AssertionError(f"nobody should ask {request}")

    async def close(self) -> None: ...


def quiet(**options: Any) -> ManagerOptions:
    return ManagerOptions(
        health_address="0", metrics_address="0", webhook_host="127.0.0.1", webhook_port=0, block_limit=0, **options
    )


def folder_with_certificate(path: Path) -> str:
    (path / "tls.crt").write_bytes(PAIR.certificate)
    (path / "tls.key").write_bytes(PAIR.key)
    return str(path)


async def test_webhooks_are_served_with_the_certificate_of_a_folder(tmp_path: Path) -> None:
    options = quiet(webhook_certificates=folder_with_certificate(tmp_path))
    async with Manager(check, client=Client(UnusedTransport()), options=options) as manager:
        trusting = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
        _, writer = await asyncio.open_connection("127.0.0.1", manager.port("webhooks"), ssl=trusting)
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()

    assert ssl.DER_cert_to_PEM_cert(shown) in PAIR.certificate.decode()
    assert "certwatcher_read_certificate_total 1.0" in manager.metrics.exposition().decode()


async def test_a_manager_is_not_ready_without_a_certificate() -> None:
    source = StaticCertificate(given=False)
    manager = Manager(check, client=Client(UnusedTransport()), options=quiet(), certificates=source)
    starting = asyncio.create_task(manager.__aenter__())
    await source.asked.wait()

    report = await manager._parts.endpoints.readyz.report(only="webhooks")

    assert not report.healthy
    assert "there is no certificate yet; waiting for the test" in str(report.results[0])
    manager.stop()
    await starting
    await manager.__aexit__(None, None, None)


def test_a_pod_that_cannot_write_anywhere_has_no_place_for_temporary_files_and_needs_none() -> None:
    script = (
        "import tempfile; tempfile._candidate_tempdir_list = lambda: []\n"
        "import kubewright.manager.webhooks, kubewright.webhooks.serving.server\n"
        "import kubewright.webhooks.certificates.secret\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


async def test_webhooks_that_are_off_are_not_served() -> None:
    async with Manager(check, client=Client(UnusedTransport()), options=quiet(webhooks=False)) as manager:
        with pytest.raises(ConfigError, match="the webhooks server is off"):
            manager.port("webhooks")


def test_the_switch_of_kubebuilder_is_understood() -> None:
    assert ManagerOptions.load(environ={"ENABLE_WEBHOOKS": "false"}).webhooks is False
    both = {"KUBEWRIGHT_WEBHOOKS": "true", "ENABLE_WEBHOOKS": "false"}
    assert ManagerOptions.load(environ=both).webhooks is True
    assert ManagerOptions.load(environ={"KUBEWRIGHT_WEBHOOK_PORT": "9444"}).webhook_port == 9444
    with pytest.raises(ConfigError, match="KUBEWRIGHT_WEBHOOK_PORT is 'high'; it takes a number"):
        ManagerOptions.load(environ={"KUBEWRIGHT_WEBHOOK_PORT": "high"})


async def test_without_any_way_to_be_called_the_manager_says_what_to_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_GO_FOLDER", tmp_path)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(ConfigError, match="give the manager a Config instead of a client, or its certificates"):
        async with Manager(check, client=Client(UnusedTransport()), options=quiet()):
            pass


async def test_the_folder_of_controllers_in_go_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GO_FOLDER", Path(folder_with_certificate(tmp_path)))

    async with Manager(check, client=Client(UnusedTransport()), options=quiet()) as manager:
        assert manager.port("webhooks")


async def test_a_webhook_that_comes_too_late_is_refused(tmp_path: Path) -> None:
    options = quiet(webhook_certificates=folder_with_certificate(tmp_path))
    async with Manager(check, client=Client(UnusedTransport()), options=options) as manager:
        with pytest.raises(ConfigError, match="webhooks are added before the manager starts; it is running"):
            manager.add(check)


class SlowListTransport(UnusedTransport):
    """A transport to a server that takes its time to list anything."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Any]:
        self.asked.set()
        await asyncio.Event().wait()
        yield


async def test_a_manager_is_not_ready_until_what_its_webhooks_read_is_in_sync(tmp_path: Path) -> None:
    @validate(Web, reads=[ConfigMap])
    async def check_limits(web: Web, cached: CacheReader) -> None: ...

    server = SlowListTransport()
    options = quiet(webhook_certificates=folder_with_certificate(tmp_path))
    manager = Manager(check_limits, client=Client(server), options=options)
    starting = asyncio.create_task(manager.__aenter__())
    await server.asked.wait()

    report = await manager._parts.endpoints.readyz.report(only="caches")

    assert not report.healthy
    assert "not in sync yet: ConfigMap" in str(report.results[0])
    manager.stop()
    await starting
    await manager.__aexit__(None, None, None)


class Told:
    """Tells the cluster, and remembers whether the server was there."""

    name = "told"

    def __init__(self, server: WebhookServer) -> None:
        self.server = server
        self.events: list[tuple[str, bool]] = []
        self.problem = "may not write"
        self.begun = asyncio.Event()
        self.ready = asyncio.Event()
        self.fail = asyncio.Event()

    async def wait_ready(self) -> None:
        await self.ready.wait()

    async def run(self) -> None:
        self.events.append(("begin", self.server.problem is None))
        self.begun.set()
        try:
            await self.fail.wait()
            raise KubewrightError("no more")
        finally:
            self.events.append(("end", self.server.problem is None))


class StaticCertificate:
    """Always the same certificate, or never one."""

    def __init__(self, *, given: bool = True) -> None:
        self.asked = asyncio.Event()
        self._given = given

    async def current(self) -> tuple[bytes, bytes]:
        self.asked.set()
        if not self._given:
            await asyncio.Event().wait()
        return PAIR.certificate, PAIR.key

    def __str__(self) -> str:
        return "the test"

    async def changed(self) -> None:
        await asyncio.Event().wait()


async def test_the_cluster_is_told_while_the_server_serves() -> None:
    server = WebhookServer(WebhookRouter([check]), StaticCertificate(), host="127.0.0.1", port=0)
    told = Told(server)
    served = ServedWebhooks(server, [told])
    task = asyncio.create_task(served.run())
    await server.wait_ready()
    await told.begun.wait()
    assert served.problem == "may not write"

    told.ready.set()
    await served.wait_ready()
    assert served.problem is None
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert told.events == [("begin", True), ("end", True)]


async def test_a_failure_of_either_ends_both() -> None:
    server = WebhookServer(WebhookRouter([check]), StaticCertificate(), host="127.0.0.1", port=0)
    told = Told(server)
    told.fail.set()

    with pytest.raises(KubewrightError, match="no more"):
        await ServedWebhooks(server, [told]).run()

    assert server.problem == "the server has stopped"
