"""The proxy subresources reach no service of the API server's own machine, whatever objects a user writes.

Covers: kubewright.apiserver.proxy, kubewright.apiserver.outbound
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.builders.pods import pod_tree
from tests.planes import Plane
from tests.security.raw_requests import UPGRADE, Caller
from tests.stub_server import ReceivedRequest, StubResponse, StubServer

from kubewright import Client, Config, connect
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.errors import ApiError, Forbidden, Invalid

OURS = (
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "169.254.169.254",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "fe80::1",
    "ff02::1",
)
PLAIN: tuple[str, ...] = ()


@pytest.fixture
async def victim() -> AsyncIterator[StubServer]:
    """A server on loopback that gives everybody everything, and switches protocols."""

    def answer(received: ReceivedRequest) -> StubResponse:
        upgrade = ("upgrade", "websocket") in received.headers
        return StubResponse(b"", 101, headers=(("Upgrade", "websocket"),)) if upgrade else StubResponse(b"secret")

    async with StubServer(handlers={"/": answer}) as server:
        yield server


@pytest.fixture
async def editor(plane: Plane, client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[tuple[Client, Caller]]:
    """A user with the ClusterRole `edit` in the namespace: a client, and one who sends raw requests."""
    name = f"editor-{namespace}"
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
    }
    await post(client, f"/apis/{group}/v1/namespaces/{namespace}/rolebindings", binding)
    kubeconfig = await plane.user(name)
    async with connect(Config.load(kubeconfig=kubeconfig)) as user:
        yield user, Caller.of_kubeconfig(kubeconfig, tmp_path)


async def post(client: Client, path: str, tree: dict[str, Any]) -> None:
    await client.request("POST", path, body=json.dumps(tree).encode())


async def patch_status(client: Client, path: str, status: dict[str, Any]) -> None:
    await client.request(
        "PATCH",
        f"{path}/status",
        body=json.dumps({"status": status}).encode(),
        content_type="application/merge-patch+json",
    )


def message(body: str) -> str:
    return str(json.loads(body)["message"])


@pytest.mark.parametrize("headers", [PLAIN, UPGRADE], ids=["plain", "upgrade"])
async def test_a_service_of_type_external_name_leads_nowhere(
    editor: tuple[Client, Caller], namespace: str, victim: StubServer, headers: tuple[str, ...]
) -> None:
    client, caller = editor
    services = f"/api/v1/namespaces/{namespace}/services"
    spec = {"type": "ExternalName", "externalName": "localhost"}
    await post(client, services, {"metadata": {"name": "bare"}, "spec": spec})
    ports = [{"name": "exec", "port": victim.port}]
    await post(client, services, {"metadata": {"name": "ported"}, "spec": {**spec, "ports": ports}})

    for scheme in ("", "https:"):
        bare = await caller.send(f"{services}/{scheme}bare:{victim.port}/proxy/exec", *headers)
        number = await caller.send(f"{services}/{scheme}ported:{victim.port}/proxy/exec", *headers)
        name = await caller.send(f"{services}/{scheme}ported:exec/proxy/exec", *headers)

        assert (bare.code, message(bare.body)) == (503, f'no service port {victim.port} found for service "bare"')
        assert (number.code, message(number.body)) == (404, 'services "ported" not found')
        assert (name.code, message(name.body)) == (404, 'services "ported" not found')
    assert victim.received == []


@pytest.mark.parametrize("address", [*(one for one in OURS if one != "255.255.255.255"), "ff12::1"])
async def test_endpoints_of_this_machine_are_refused(client: Client, namespace: str, address: str) -> None:
    subset = {"addresses": [{"ip": address}], "ports": [{"port": 80}]}
    family = "IPv6" if ":" in address else "IPv4"
    slice_tree = {
        "metadata": {"name": "web"},
        "addressType": family,
        "endpoints": [{"addresses": [address]}],
        "ports": [{"port": 80}],
    }

    with pytest.raises(Invalid):
        await post(
            client,
            f"/api/v1/namespaces/{namespace}/endpoints",
            {"metadata": {"name": "web"}, "subsets": [subset]},
        )
    with pytest.raises(Invalid):
        await post(client, f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", slice_tree)


async def test_an_endpoint_that_is_no_pod_of_the_namespace_is_not_proxied_to(
    client: Client, editor: tuple[Client, Caller], namespace: str
) -> None:
    _, caller = editor
    core = f"/api/v1/namespaces/{namespace}"
    await post(client, f"{core}/pods", pod_tree("other", namespace, schedulerName="nobody"))
    addresses = [
        {"ip": "10.9.8.7"},
        {"ip": "10.9.8.6", "targetRef": {"kind": "Pod", "name": "other", "namespace": namespace}},
        {"ip": "10.9.8.5", "targetRef": {"kind": "Pod", "name": "other", "namespace": "kube-system"}},
        {"ip": "10.9.8.4", "targetRef": {"kind": "Pod", "name": "none", "namespace": namespace}},
    ]
    await post(client, f"{core}/services", {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
    await post(
        client,
        f"{core}/endpoints",
        {"metadata": {"name": "web"}, "subsets": [{"addresses": addresses, "ports": [{"port": 80}]}]},
    )

    for name in ("web", "web:80", "http:web:"):
        answer = await caller.send(f"{core}/services/{name}/proxy/")

        assert (answer.code, message(answer.body)) == (503, f'no endpoints available for service "{name}"')


@pytest.mark.parametrize("headers", [PLAIN, UPGRADE], ids=["plain", "upgrade"])
async def test_a_pod_with_an_address_of_this_machine_is_not_proxied_to(
    client: Client, editor: tuple[Client, Caller], namespace: str, victim: StubServer, headers: tuple[str, ...]
) -> None:
    user, caller = editor
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await post(user, pods, pod_tree("web", namespace, schedulerName="nobody"))
    with pytest.raises(Forbidden):
        await patch_status(user, f"{pods}/web", {"podIP": "127.0.0.1"})

    for address in ("", *OURS):
        try:
            await patch_status(client, f"{pods}/web", {"podIP": address, "podIPs": [{"ip": address}]})
        except ApiError:
            continue  # as good
        for name in (f"web:{victim.port}", f"https:web:{victim.port}", "web"):
            answer = await caller.send(f"{pods}/{name}/proxy/exec", *headers)

            assert (answer.code, message(answer.body)) == (400, "address not allowed")
    assert victim.received == []


async def test_a_node_with_an_address_of_this_machine_is_not_proxied_to(
    plane: Plane, client: Client, namespace: str, victim: StubServer, tmp_path: Path
) -> None:
    caller = Caller.of_kubeconfig(plane.kubeconfig, tmp_path)
    await post(client, "/api/v1/nodes", {"metadata": {"name": namespace}})
    try:
        for address in (*OURS, "localhost"):
            status = {
                "addresses": [{"type": "InternalIP", "address": address}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": victim.port}},
            }
            await patch_status(client, f"/api/v1/nodes/{namespace}", status)
            for name in (namespace, f"{namespace}:{victim.port}", f"https:{namespace}:1234"):
                answer = await caller.send(f"/api/v1/nodes/{name}/proxy/exec")

                assert (answer.code, message(answer.body)) == (400, "address not allowed")
    finally:
        await client.request("DELETE", f"/api/v1/nodes/{namespace}")
    assert victim.received == []


async def test_only_the_kubelet_of_simulated_nodes_is_proxied_to_on_loopback(
    embedded_cluster: EmbeddedCluster, victim: StubServer, tmp_path: Path
) -> None:
    caller = Caller.of_kubeconfig(embedded_cluster.kubeconfig, tmp_path)

    assert (await caller.send("/api/v1/nodes/node-1/proxy/healthz")).body == "ok"
    for port in (victim.port, caller.port):
        answer = await caller.send(f"/api/v1/nodes/https:node-1:{port}/proxy/healthz")

        assert (answer.code, message(answer.body)) == (400, "address not allowed")
    assert victim.received == []


@pytest.mark.parametrize("name", ["a:b:c:d", "ftp:web:80", ":80", "http::80", ":web:80:", "::"])
async def test_a_name_with_other_parts_is_a_bad_request(
    editor: tuple[Client, Caller], namespace: str, name: str
) -> None:
    _, caller = editor

    for kind in ("pods", "services"):
        answer = await caller.send(f"/api/v1/namespaces/{namespace}/{kind}/{name}/proxy/")

        assert (answer.code, message(answer.body)) == (400, f'invalid {kind[:-1]} request "{name}"')
