"""A path has one meaning: what is authorized is what is served, and what an extension server gets.

Covers: kubewright.apiserver.wire.requests, kubewright.apiserver.front.router, kubewright.apiserver.proxy.aggregator
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.planes import Plane
from tests.security.callers import Caller, anonymous, caller, grant
from tests.stub_server import ReceivedRequest, StubResponse, StubServer

from kubewright import Client
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.testing import time_limit

PODS = "/api/v1/namespaces/default/pods"
PATHS = [
    "//api/v1/pods",
    "//apis/apps/v1/deployments",
    "/api//v1/pods",
    "/api/v1//pods",
    "/api/v1/pods/",
    "/api/v1/pods//",
    "/apis//v1/pods",
    "/apis/apps//deployments",
    "/apis/apps/v1//deployments",
    "/apis/apps/v1/namespaces/default//deployments",
    "/apis/apps/v1/namespaces/default/deployments//",
    "/api/v1/namespaces/default%2Fpods",
    "/api/v1/namespaces/default/pods%2Fweb",
    "/api/v1/namespaces/default/pods/a%2Fb",
    "/api%2Fv1%2Fpods",
    "/%61pi/v1/pods",
    "/api/v1/%70ods",
    "/api/v1/./pods",
    "/api/v1/../v1/pods",
    "/api/v1/namespaces/default/pods/..",
    "/api/v1/namespaces/default/pods/.",
    "/api/v1/namespaces/default/pods/%2e%2e",
    "/api/v1/namespaces/default/pods/%2E",
    "/api/v1/namespaces/default/pods/a%00b",
    "/api/v1/namespaces/default/pods/a%20b",
    "/api/v1/namespaces/default/pods/a%25b",
    "/healthz/../api/v1/pods",
    "/healthz//ping",
    "/healthz%2Fping",
    "/apis/",
    "/apis//",
    "/api/v1/",
    "/version/",
    "/./version",
    "/api/v1/proxy/namespaces/default/pods/web",
    "/api/v1/pods?watch=false;x",
    "/api/v1/pods?fieldSelector=metadata.name%3D..",
    "/api/v1/pods?fieldSelector=metadata.name%3Da/b",
    "/api/v1/namespaces/default/pods/web?watch=true",
    "/api/v1/namespaces/default/status",
    "/api/v1/namespaces/default/status/x",
]
# Watches, which take long for those who may; and paths that kube-apiserver serves in some odd way, and this server not.
FORBIDDEN = [
    "/api/v1/watch/namespaces/default/pods/web",
    "/api/v1/watch/pods?fieldSelector=metadata.name%3Dweb",
    "/apis/apps/v1/namespaces//deployments",
    "/apis/apps/v1/namespaces/default/deployments//status",
    "/api/v1/namespaces/../pods",
]
METHODS = ["HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]


@pytest.fixture
async def pair(embedded_cluster: EmbeddedCluster, real_cluster: RealCluster) -> tuple[Plane, Plane]:
    return embedded_cluster, real_cluster


async def compare(pair: tuple[Plane, Plane], who: str, method: str, path: str) -> None:
    answers = []
    for plane in pair:
        if who == "anonymous":
            user = anonymous(plane)
        elif who == "admin":
            user = await caller(plane, "", kubeconfig=plane.kubeconfig)
        else:
            user = await caller(plane, who)
        answer = await user.send(method, path)
        told = answer.code, answer.message if answer.code >= 400 else ""
        answers.append(told)
    assert answers[0] == answers[1]


@pytest.mark.real
@pytest.mark.parametrize("path", PATHS + FORBIDDEN)
async def test_odd_paths_are_forbidden_in_the_same_words(pair: tuple[Plane, Plane], path: str) -> None:
    await compare(pair, "mallory", "GET", path)


@pytest.mark.real
@pytest.mark.parametrize("path", PATHS)
async def test_odd_paths_are_served_alike(pair: tuple[Plane, Plane], path: str) -> None:
    await compare(pair, "admin", "GET", path)


@pytest.mark.real
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", [PODS, f"{PODS}/web", "/healthz", "/api/v1//pods", f"{PODS}/%2e%2e"])
async def test_methods_are_the_same_verbs_on_both_servers(pair: tuple[Plane, Plane], method: str, path: str) -> None:
    await compare(pair, "mallory", method, path)


@pytest.fixture
async def group(plane: Plane, client: Client, namespace: str) -> AsyncIterator[tuple[str, StubServer]]:
    """A group that an extension server serves, and the server."""
    admin = await caller(plane, "", kubeconfig=plane.kubeconfig)
    name = f"{namespace}.example.io"
    async with StubServer() as server:
        server.handlers["/"] = served
        service = {"metadata": {"name": "ext"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        assert (await admin.send("POST", f"/api/v1/namespaces/{namespace}/services", service)).code == 201
        spec = {"group": name, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
                "insecureSkipTLSVerify": True,
                "service": {"name": "ext", "namespace": namespace, "port": server.port}}  # fmt: skip
        path = "/apis/apiregistration.k8s.io/v1/apiservices"
        body = {"metadata": {"name": f"v1.{name}"}, "spec": spec}
        assert (await admin.send("POST", path, body)).code == 201
        async with time_limit(60):
            while True:
                if (await admin.send("GET", f"/apis/{name}/v1/foos")).code == 200:
                    break
                await asyncio.sleep(0.02)
        server.received.clear()
        yield name, server
        await admin.send("DELETE", f"{path}/v1.{name}")


def served(received: ReceivedRequest) -> StubResponse:
    return StubResponse({"kind": "Secret", "path": received.path})


async def attempts(user: Caller, group: str, server: StubServer, paths: list[str]) -> list[str]:
    """The paths that an extension server got of a user."""
    server.received.clear()
    for path in paths:
        await user.send("GET", path.replace("{group}", group))
    # The server itself asks for discovery and OpenAPI documents.
    return [each.path for each in server.received if ("x-remote-user", "mallory") in each.headers]


async def test_no_path_of_an_extension_server_gets_past_authorization(
    plane: Plane, group: tuple[str, StubServer]
) -> None:
    paths = [
        "/apis/{group}/v1/foos",
        "/apis/{group}/v1//foos",
        "/apis/{group}/v1///foos/x",
        "/apis/{group}/v1//namespaces/default/foos/x",
        "//apis/{group}/v1/foos",
        "/apis//{group}/v1/foos",
        "/apis/{group}//v1/foos",
        "/apis/{group}/v1/%2Ffoos",
        "/apis/{group}/v1%2Ffoos",
        "/apis/{group}%2Fv1/foos",
        "/apis%2F{group}/v1/foos",
        "/apis/{group}/v1/./foos",
        "/apis/{group}/v1/../v1/foos",
        "/apis/./{group}/v1/foos",
        "/healthz/../apis/{group}/v1/foos",
    ]

    assert await attempts(await caller(plane, "mallory"), *group, paths) == []


async def test_an_extension_server_gets_the_path_that_was_authorized(
    plane: Plane, client: Client, group: tuple[str, StubServer]
) -> None:
    name, server = group
    await grant(client, "mallory", [{"verbs": ["get"], "apiGroups": [name], "resources": ["foos"]}])
    mallory = await caller(plane, "mallory")

    paths = ["/apis/{group}/v1/foos/a%20b", "/apis/{group}/v1%2Ffoos/a", "/apis/{group}/v1/%66oos/a!(b)%3F"]
    got = await attempts(mallory, name, server, paths)

    prefix = f"/apis/{name}/v1/foos"
    assert got == [f"{prefix}/a%20b", f"{prefix}/a", f"{prefix}/a%21%28b%29%3F"]


async def test_an_extension_server_gets_the_query_that_was_authorized(
    plane: Plane, client: Client, group: tuple[str, StubServer]
) -> None:
    name, server = group
    await grant(client, "mallory", [{"verbs": ["watch"], "apiGroups": [name], "resources": ["foos"]}])
    mallory = await caller(plane, "mallory")

    # A part with a semicolon is not passed on, so it must not make the list a watch.
    assert await attempts(mallory, name, server, [f"/apis/{name}/v1/foos?watch=true;a"]) == []
    assert await attempts(mallory, name, server, [f"/apis/{name}/v1/foos?watch=%zz"]) == []
