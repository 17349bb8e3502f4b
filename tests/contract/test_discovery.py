"""What the server has, and what people call it."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright import Client, GroupVersionKind
from kubewright.client.discovery import Discovery
from kubewright.client.transport import HttpRequest, HttpResponse, Transport
from kubewright.errors import NotFound


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
    catalogue = await discovery.catalogue()
    discovery._catalogue = type(catalogue)(r for r in catalogue.resources if r.gvk.kind != "Widget")

    found = await discovery.find(GroupVersionKind("contract.example.io", "v1", "Widget"))

    assert found.gvr.resource == "widgets"


async def test_unknown_name_is_not_found(client: Client) -> None:
    with pytest.raises(NotFound, match='no resource type "unicorns"'):
        await client.discovery.resolve("unicorns")


async def test_category_lists_its_kinds_once(client: Client, widget: Any) -> None:
    kinds = [resource.gvk.kind for resource in (await client.discovery.catalogue(refresh=True)).by_category("all")]

    assert "Deployment" in kinds
    assert "Widget" in kinds
    assert len(kinds) == len(set(kinds))


async def test_old_form_of_discovery_gives_the_same_catalogue(client: Client) -> None:
    old = OldServer(client.transport)

    by_old = await Discovery(old).catalogue()
    by_new = await client.discovery.catalogue(refresh=True)

    assert "/apis/apps/v1" in old.paths
    assert {r.gvr: (r.gvk, r.namespaced, r.short_names, set(r.subresources)) for r in by_old.resources} == {
        r.gvr: (r.gvk, r.namespaced, r.short_names, set(r.subresources)) for r in by_new.resources
    }
