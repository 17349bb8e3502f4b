"""While the server works on a large request it answers others, and what they write counts.

Covers: kubewright.apiserver.verbs, kubewright.apiserver.kinds
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubewright import Client
from kubewright.apiserver.builtin.strategy import BuiltinStrategy
from kubewright.apiserver.kinds.large_requests import LARGE
from kubewright.apiserver.kinds.resources import Tree
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.errors import AlreadyExists
from kubewright.k8s.core.v1 import ConfigMap


class Validation:
    """Holds the validation of large objects until it is let go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = asyncio.Event()
        self.go_on = threading.Event()
        self._loop = asyncio.get_running_loop()
        for name in ("validate", "validate_update"):
            monkeypatch.setattr(BuiltinStrategy, name, self._held(getattr(BuiltinStrategy, name)))

    def _held(self, validate: Any) -> Any:
        def held(strategy: BuiltinStrategy, tree: Tree, *others: Any) -> Any:
            if len(str(tree)) > LARGE:
                self._loop.call_soon_threadsafe(self.reached.set)
                assert self.go_on.wait(60)
            return validate(strategy, tree, *others)

        return held


@pytest.fixture(scope="module")
async def client() -> AsyncIterator[Client]:
    async with EmbeddedCluster(controllers=False) as cluster:
        yield cluster.client


def large(name: str) -> ConfigMap:
    return ConfigMap.named(name, "default", data={"a": "x" * 2 * LARGE})


async def test_others_are_answered_while_a_large_object_is_validated(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    validation = Validation(monkeypatch)
    creating = asyncio.create_task(client.create(large("slow")))
    await validation.reached.wait()

    small = await client.create(ConfigMap.named("quick", "default", data={"a": "b"}))
    validation.go_on.set()

    assert small.metadata.name == "quick"
    assert (await creating).data == large("slow").data


async def test_a_name_taken_meanwhile_is_taken(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    validation = Validation(monkeypatch)
    creating = asyncio.create_task(client.create(large("taken")))
    await validation.reached.wait()

    await client.create(ConfigMap.named("taken", "default", data={"a": "b"}))
    validation.go_on.set()

    with pytest.raises(AlreadyExists):
        await creating
    assert (await client.get(ConfigMap, "taken", namespace="default")).data == {"a": "b"}


async def test_a_patch_is_applied_to_what_was_written_meanwhile(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.create(ConfigMap.named("shared", "default", data={"a": "x" * 2 * LARGE}))
    validation = Validation(monkeypatch)
    path = "/api/v1/namespaces/default/configmaps/shared"
    merge = "application/merge-patch+json"
    patching = asyncio.create_task(client.request("PATCH", path, body=b'{"data":{"slow":"1"}}', content_type=merge))
    await validation.reached.wait()
    monkeypatch.undo()

    # Not by a patch: it would wait for the other, since the object is large.
    await client.request("DELETE", path)
    await client.create(ConfigMap.named("shared", "default", data={"quick": "1"}))
    validation.go_on.set()
    await patching

    assert (await client.get(ConfigMap, "shared", namespace="default")).data == {"slow": "1", "quick": "1"}
