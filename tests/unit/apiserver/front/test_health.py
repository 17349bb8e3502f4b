"""Checks pass as long as the part they speak of works, and are told in the order of kube-apiserver."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from kubewright.apiserver.front.health import Health
from kubewright.apiserver.server import ApiServer
from kubewright.apiserver.storage.journal import SqliteJournal
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.requests import Peer, Request
from kubewright.apiserver.wire.users import User


def ask(server: ApiServer, path: str, **query: str) -> tuple[int, str]:
    answer = server.nonresource.health(Request("GET", path, query, {}, b"", Peer()), User("jo", ()))
    return answer.code, answer.body.decode()


def failing(server: ApiServer) -> list[str]:
    return [line.split("]")[1].split(" ")[0] for line in ask(server, "/readyz")[1].splitlines() if line[:3] == "[-]"]


async def test_a_server_is_ready_from_its_start_to_its_stop() -> None:
    server = ApiServer()
    assert ask(server, "/readyz")[0] == 500
    assert "informer-sync" in failing(server)
    assert "shutdown" in failing(server)

    await server.start()
    assert ask(server, "/readyz") == (200, "ok")
    assert ask(server, "/livez/poststarthook/crd-informer-synced") == (200, "ok")

    await server.stop()
    assert ask(server, "/livez/poststarthook/crd-informer-synced")[0] == 500
    assert "shutdown" in failing(server)


async def test_a_store_that_cannot_write_is_not_healthy_until_it_can(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path)
    server = ApiServer(store=Store(journal=journal))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    limit = journal._db.execute("PRAGMA max_page_count").fetchone()[0]
    large = {**namespace, "metadata": {"name": "large", "annotations": {"a": "x" * 100_000}}}

    journal._db.execute("PRAGMA max_page_count = 10")  # as a full disk is
    with pytest.raises(sqlite3.OperationalError):
        await server.loopback.ensure(large)
    assert ask(server, "/livez/etcd")[0] == 500

    journal._db.execute(f"PRAGMA max_page_count = {limit}")
    await server.loopback.ensure(namespace)
    assert ask(server, "/livez/etcd") == (200, "ok")
    journal.close()


def test_readiness_has_checks_of_its_own_and_all_are_in_order() -> None:
    health = Health()
    health.add(lambda: True, "shutdown", "etcd-readiness", "etcd")
    health.add_hooks(lambda: False, "bootstrap-controller")

    assert list(health.checks_of("livez")) == ["ping", "log", "etcd", "poststarthook/bootstrap-controller"]
    assert list(health.checks_of("readyz")) == [
        "ping", "log", "etcd", "etcd-readiness", "poststarthook/bootstrap-controller", "shutdown",
    ]  # fmt: skip
