"""What the server has, and what people call it.

Covers: kubewright.apiserver.front, kubewright.client
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from kubewright import Client
from kubewright.api import GroupVersionKind
from kubewright.api.codec import from_tree
from kubewright.api.kinds import GroupVersion
from kubewright.client.discovery import ApiResourceList, Discovery
from kubewright.client.transport.transport import HttpRequest, HttpResponse, Transport
from kubewright.errors import NotFound
from kubewright.k8s.apiregistration.v1 import APIService
from kubewright.testing import time_limit


class OldServer:
    """A transport that hides aggregated discovery, as a server before 1.26 would."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.paths: list[str] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.paths.append(request.path)
        plain = HttpRequest(method=request.method, path=request.path, headers=(("Accept", "application/json"),))
        return await self._transport.send(plain)

    def stream(self, request: HttpRequest) -> Any:
        raise NotImplementedError

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("po", "Pod"),
        ("pods", "Pod"),
        ("pod", "Pod"),
        ("Pod", "Pod"),
        ("deploy", "Deployment"),
        ("deployments.apps", "Deployment"),
        ("deployments.v1.apps", "Deployment"),
        ("svc", "Service"),
        ("crd", "CustomResourceDefinition"),
        ("events", "Event"),
        ("wd", "Widget"),
        ("widgets.contract.example.io", "Widget"),
    ],
)
async def test_names_resolve_as_in_kubectl(client: Client, widget: Any, name: str, kind: str) -> None:
    assert (await client.discovery.resolve(name)).gvk.kind == kind


async def test_core_comes_before_other_groups(client: Client) -> None:
    assert (await client.discovery.resolve("events")).gvr.group == ""


async def test_kind_is_found_with_plural_scope_verbs_and_subresources(client: Client) -> None:
    found = await client.discovery.find(GroupVersionKind("apps", "v1", "Deployment"))

    assert found.gvr.resource == "deployments"
    assert found.namespaced
    assert {"get", "list", "watch", "create", "patch"} <= set(found.verbs)
    assert {"status", "scale"} <= set(found.subresources)


async def test_miss_refreshes_once_and_finds_a_kind_installed_since(client: Client, widget: Any) -> None:
    discovery = Discovery(client.transport)
    resource_list = await discovery.resources()
    discovery._resources = type(resource_list)(r for r in resource_list.items if r.gvk.kind != "Widget")

    found = await discovery.find(GroupVersionKind("contract.example.io", "v1", "Widget"))

    assert found.gvr.resource == "widgets"


async def test_unknown_name_is_not_found(client: Client) -> None:
    with pytest.raises(NotFound, match='no resource type "unicorns"'):
        await client.discovery.resolve("unicorns")


async def test_category_lists_its_kinds_once(client: Client, widget: Any) -> None:
    kinds = [resource.gvk.kind for resource in (await client.discovery.resources(refresh=True)).by_category("all")]

    assert "Deployment" in kinds
    assert "Widget" in kinds
    assert len(kinds) == len(set(kinds))


async def test_legacy_discovery_gives_the_same_resources(client: Client) -> None:
    old = OldServer(client.transport)

    async with time_limit(60):
        while True:  # until nothing has changed in between: definitions of other tests may still be on their way out
            by_new = shown(await client.discovery.resources(refresh=True))
            by_old = shown(await Discovery(old).resources())
            if shown(await client.discovery.resources(refresh=True)) == by_new:
                break

    assert "/apis/apps/v1" in old.paths
    assert by_old == by_new


def shown(resource_list: ApiResourceList) -> dict[Any, Any]:
    return {r.gvr: (r.gvk, r.namespaced, r.short_names, set(r.subresources)) for r in resource_list.items}


async def test_versions_of_an_extension_server_that_does_not_answer_are_stale_and_hide_no_others(
    client: Client,
) -> None:
    away = GroupVersion(f"g{uuid4().hex[:8]}.example.io", "v1")
    spec = {"group": away.group, "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
            "insecureSkipTLSVerify": True, "service": {"name": "away", "namespace": "default"}}  # fmt: skip
    name = f"v1.{away.group}"
    await client.create(from_tree(APIService, {"metadata": {"name": name}, "spec": spec}))

    for discovery in (client.discovery, Discovery(OldServer(client.transport))):
        async with time_limit(60):
            while away not in (await discovery.resources(refresh=True)).stale:
                pass  # the server learns of it a moment later
        assert (await discovery.resolve("deploy")).gvk.kind == "Deployment"

    await client.delete(APIService, name)
