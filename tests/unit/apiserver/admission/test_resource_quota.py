"""The ResourceQuota plugin and writes that wait: no two of them may have what is left for one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kubewright._base.clock import SystemClock
from kubewright.apiserver.admission.resource_quota import ResourceQuota
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.controllers.crd_resources import resources_of
from kubewright.apiserver.kinds.access import OpenAccess
from kubewright.apiserver.kinds.admission import Chain
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.verbs.apply import ApplyHandler
from kubewright.apiserver.verbs.create import CreateHandler
from kubewright.apiserver.verbs.delete import DeleteHandler
from kubewright.apiserver.verbs.loopback import Loopback
from kubewright.apiserver.verbs.patch import PatchHandler
from kubewright.apiserver.verbs.registry import Registry
from kubewright.apiserver.verbs.update import UpdateHandler
from kubewright.apiserver.wire.status_errors import StatusError

Tree = dict[str, Any]

SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
WIDGETS: Tree = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": SCHEMA},
            {"name": "v1beta1", "served": True, "storage": False, "schema": SCHEMA},
        ],
        "conversion": {"strategy": "Webhook"},
    },
}


class SlowConverter:
    """A conversion webhook: others are served while it is called."""

    def __init__(self) -> None:
        self.calls = 0

    async def convert(self, trees: list[Tree], api_version: str) -> list[Tree]:
        self.calls += 1
        await asyncio.sleep(0.001)
        return [{**tree, "apiVersion": api_version} for tree in trees]


class Namespace:
    """A namespace with a quota of one widget, and a client."""

    def __init__(self) -> None:
        self.store, self.converter = Store(), SlowConverter()
        catalog, clock = Catalog(ServiceAllocator()), SystemClock()
        catalog.serve("widgets.example.com", resources_of(WIDGETS, self.converter))
        registry = Registry(self.store, Chain([ResourceQuota(self.store, catalog, clock)]), clock, access=OpenAccess())
        creates = CreateHandler(registry)
        updates = UpdateHandler(registry, creates)
        patches = PatchHandler(registry, updates, ApplyHandler(registry, creates, updates))
        self._client = Loopback(
            self.store, catalog, creates=creates, updates=updates, patches=patches, deletes=DeleteHandler(registry)
        )
        self._catalog = catalog
        quota = {"metadata": {"name": "q", "namespace": "shop"}, "spec": {"hard": {"count/widgets.example.com": "1"}}}
        self.store.table("/resourcequotas").put("shop/q", json.dumps(quota).encode(), self.store.next_version())

    def resource(self, version: str) -> Resource:
        found = self._catalog.find("example.com", version, "widgets")
        assert found is not None
        return found

    async def create(self, version: str, **metadata: str) -> str:
        tree = {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"namespace": "shop", **metadata}}
        try:
            await self._client.create(self.resource(version), tree)
        except StatusError as error:
            return error.reason
        return "Created"


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_of_two_creates_at_once_one_is_refused(version: str) -> None:
    namespace = Namespace()

    ends = await asyncio.gather(*(namespace.create(version, name=name) for name in "ab"))

    assert sorted(ends) == ["Created", "Forbidden"]
    assert len(namespace.store.table("example.com/widgets")) == 1


async def test_a_create_that_fails_while_it_is_converted_uses_nothing() -> None:
    namespace = Namespace()
    first = asyncio.ensure_future(namespace.create("v1beta1", name="a"))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])

    assert namespace.converter.calls == 1
    assert await namespace.create("v1beta1", name="b") == "Created"


async def test_a_name_that_is_taken_is_no_excuse() -> None:
    namespace = Namespace()

    assert await namespace.create("v1beta1", name="a") == "Created"
    assert await namespace.create("v1beta1", name="a") == "Forbidden"  # as on kube-apiserver, which asks quotas first
