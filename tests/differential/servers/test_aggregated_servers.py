"""Extension servers: what both servers discover of them, what they pass on, and when they take them for available.

Covers: kubewright.apiserver.proxy
"""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.builders.definitions import definition_tree, version_tree
from tests.differential.servers.aggregated_group import AggregatedGroup, always, echoed
from tests.differential.servers.server_pair import Request, ServerClient, ServerPair, get, post, run_case
from tests.stub_server import ReceivedRequest, StubResponse, StubServer

from kubewright._base.certificates import Authority
from kubewright.testing import time_limit

pytestmark = pytest.mark.real

JSON = dict[str, Any]
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


# discovery


async def test_aggregated_discovery_is_asked_for_and_passed_on(extension: AggregatedGroup) -> None:
    pair, group = extension.pair, extension.group
    kind = {"group": group, "version": "v1", "kind": "Foo"}
    resource = {"resource": "foos", "responseKind": kind, "scope": "Namespaced", "singularResource": "foo",
                "verbs": ["get"], "categories": ["all"]}  # fmt: skip
    groups = [{"metadata": {"name": group, "creationTimestamp": None},
               "versions": [{"version": "v1", "resources": [resource], "freshness": "Current"}]}]  # fmt: skip
    tree = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups}
    tag = ("ETag", '"one"')

    def answer(received: ReceivedRequest) -> StubResponse:
        if received.path != "/apis":
            return echoed(received)
        return (
            StubResponse(b"", 304)
            if ("if-none-match", '"one"') in received.headers
            else StubResponse(tree, 200, AGGREGATED, headers=(tag,))
        )

    extension.respond("/apis", answer)
    await extension.register()
    versions = [{"version": "v1", "resources": [resource], "freshness": "Current"}]
    await assert_discovered(extension, versions)
    real, embedded = await extension.received(lambda received: received.path == "/apis")
    assert embedded == real
    await run_case(pair, [get(f"/apis/{group}"), get(f"/apis/{group}/v1")])

    extension.respond(
        "/apis", lambda received: StubResponse(b"", 503) if received.path == "/apis" else echoed(received)
    )
    await run_case(pair, [extension.touch("once")])
    await assert_discovered(extension, [{"version": "v1", "freshness": "Stale"}])
    extension.respond("/apis", answer)
    await run_case(pair, [extension.touch("twice")])
    await assert_discovered(extension, versions)


async def test_a_server_is_discovered_in_the_old_way_and_is_stale_when_it_is_gone(extension: AggregatedGroup) -> None:
    await extension.register()
    kind = {"group": "", "version": "", "kind": "Foo"}
    status = {"subresource": "status", "responseKind": kind, "verbs": ["get"]}
    resource = {"resource": "foos", "responseKind": kind, "scope": "Namespaced", "singularResource": "foo",
                "verbs": ["get", "list"], "shortNames": ["fo"], "subresources": [status]}  # fmt: skip
    await assert_discovered(extension, [{"version": "v1", "resources": [resource], "freshness": "Current"}])

    extension.respond("/apis/{group}/v1", always(StubResponse(b"", 500)))
    await run_case(extension.pair, [extension.touch()])
    await assert_discovered(extension, [{"version": "v1", "freshness": "Stale"}])


async def test_groups_and_versions_are_in_the_order_of_their_priorities(extension: AggregatedGroup) -> None:
    """Those of definitions and those of extension servers, which may share a group."""
    pair = extension.pair
    end = extension.group
    for name, priority, versions in (
        ("m", 2000, {"v1": 10, "v2": 10, "v3alpha1": 30}),
        ("a", 100, {"v1": 10}),
        ("z", 17750, {"v1": 10}),
        ("x", 1000, {"v1": 10}),
        ("c", 3000, {"v2": 200, "v3": 5}),
    ):
        extension.group = f"{name}.{end}"
        for version, rank in versions.items():
            await extension.register(version, groupPriorityMinimum=priority, versionPriority=rank, service="none")
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    made = (("c", "v1"), ("d", "v1beta1"), ("e", "v1"))
    for name, version in made:
        tree = definition_tree(
            "things", f"{name}.{end}", kind="Thing", versions=[version_tree(version)], scope="Cluster"
        )
        await pair.both("POST", definitions, tree)

    async def order(apiserver: ServerClient, accept: str) -> list[JSON]:
        tree = json.loads((await apiserver.send("GET", "/apis", None, {"Accept": accept}, 30)).body)
        groups = tree.get("groups") or [{"name": item["metadata"]["name"], **item} for item in tree["items"]]
        return [item for item in groups if item["name"].endswith(end) or item["name"] in ("apps", "batch")]

    for accept in (AGGREGATED, "application/json"):
        real: list[JSON] = []
        embedded: list[JSON] = [{}]
        with suppress(TimeoutError):
            async with time_limit(30):
                while len(real) < 9 or real != embedded:
                    real, embedded = [await order(apiserver, accept) for apiserver, _ in extension.sides]
                    await asyncio.sleep(0.02)
        assert [item["name"] for item in embedded] == [item["name"] for item in real]
        assert embedded == real
    for name, _ in made:
        await pair.both("DELETE", f"{definitions}/things.{name}.{end}")


async def assert_discovered(extension: AggregatedGroup, versions: list[JSON]) -> None:
    found: list[Any] = [None, None]
    with suppress(TimeoutError):
        async with time_limit(30):
            while found != [versions, versions]:
                found = [await discovered(apiserver, extension.group) for apiserver, _ in extension.sides]
                await asyncio.sleep(0.02)
    assert found == [versions, versions]


async def discovered(apiserver: ServerClient, group: str) -> Any:
    tree = json.loads((await apiserver.send("GET", "/apis", None, {"Accept": AGGREGATED}, 30)).body)
    return next((item["versions"] for item in tree["items"] if item["metadata"]["name"] == group), None)


# requests


async def test_requests_are_passed_on_alike(extension: AggregatedGroup) -> None:
    pair, group = extension.pair, extension.group
    path = f"/apis/{group}/v1"
    moved = StubResponse(b"elsewhere", 302, "text/plain", location=f"{path}/foos")
    extension.respond(f"{path}/moved", always(moved))
    opened = (("Access-Control-Allow-Origin", "*"), ("X-Own", "one"), ("Warning", '299 - "beware"'))
    for server in extension.servers:
        server.handlers[f"{path}/silent"] = lambda received: asyncio.get_running_loop().create_future()
    extension.respond(f"{path}/gone", always(StubResponse(code=0)))
    extension.respond(f"{path}/opened", always(StubResponse({"a": 1}, headers=opened)))
    await extension.register()
    who = {"Impersonate-User": "jane", "Impersonate-Group": "staff", "Impersonate-Uid": "7"}
    await run_case(
        pair,
        [
            extension.settled("Passed"),
            get(f"{path}/foos?z=1&a=2&a=%20x&c=&d"),
            get(f"{path}/foos/", headers={"X-Forwarded-For": "10.1.1.1", "X-Forwarded-Proto": "http"}),
            get(f"{path}/namespaces/{{ns}}/foos/a%20b", headers=who),
            get(f"{path}/foos", headers={**who, "Impersonate-Group": "system:masters"}),
            Request("PUT", f"{path}/foos/a", {"a": 1}, content_type="text/plain"),
            Request("DELETE", f"{path}/foos/a"),
            get(f"{path}/moved"),
            get(f"{path}/opened"),
            get(f"{path}/gone"),
            get(f"{path}/silent?timeout=100ms"),
            post(f"{path}/silent?timeout=100ms", {}),
        ],
    )
    for apiserver, _ in extension.sides:
        answer = await apiserver.send("GET", f"{path}/opened", None, {}, 30)
        assert answer.headers["X-Own"] == "one"
        assert "Access-Control-Allow-Origin" not in answer.headers


async def test_a_server_may_change_the_protocol(extension: AggregatedGroup) -> None:
    path = f"/apis/{extension.group}/v1/foos"
    changed = StubResponse(b"", 101, headers=(("Connection", "Upgrade"), ("Upgrade", "echo/1")))
    extension.respond(
        path, lambda received: changed if ("upgrade", "echo/1") in received.headers else StubResponse({}, 403)
    )
    extension.respond(f"{path}/stays", always(StubResponse({"a": 1})))
    await extension.register()
    await run_case(extension.pair, [extension.settled("Passed")])

    said = ((path, "echo/1"), (path, "other/1"), (f"{path}/stays", "echo/1"))
    real, embedded = [[await spoken(apiserver, *one) for one in said] for apiserver, _ in extension.sides]

    assert embedded == real
    assert real[0] == ("HTTP/1.1 101", "hello")


async def spoken(apiserver: ServerClient, path: str, protocol: str) -> tuple[str, str]:
    """The code of the answer, and what comes back behind the head when something is said."""
    place = urlsplit(apiserver.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port, ssl=apiserver.tls)
    try:
        head = f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n"
        writer.write(head.encode())
        async with time_limit(30):
            status = (await reader.readuntil(b"\r\n\r\n")).decode()
            code = status.partition("\r\n")[0]
            if " 101 " in code:
                writer.write(b"hello")
                return code[:12], (await reader.readexactly(5)).decode()
            length = next(line for line in status.lower().split("\r\n") if line.startswith("content-length"))
            return code[:12], (await reader.readexactly(int(length.partition(":")[2]))).decode()
    finally:
        writer.close()


async def test_certificates_are_verified_alike(pair: ServerPair) -> None:
    """A server whose certificate is wrong is available all the same; requests find out."""
    async with StubServer(hosts=(f"ext.{pair.namespace}.svc",)) as server:
        extension = AggregatedGroup(pair, (server, server))
        bundles = {
            "v1": server.bundle,
            "v2": _encoded(Authority.create("another").certificate),
            "v3": _encoded(b"none"),
        }
        for version in bundles:
            extension.respond(f"/apis/{{group}}/{version}", always(StubResponse({"a": 1})))
        for name in ("ext", "other"):
            service = {"metadata": {"name": name}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
            await pair.both("POST", "/api/v1/namespaces/{ns}/services", service)
        extension.respond("/apis/{group}/v4", always(StubResponse({"a": 1})))
        for version, bundle in bundles.items():
            await extension.register(version, insecureSkipTLSVerify=False, caBundle=bundle)
        await extension.register("v4", service="other", insecureSkipTLSVerify=False, caBundle=server.bundle)
        versions = ("v1", "v2", "v3", "v4")
        try:
            await run_case(
                pair,
                [
                    *(extension.settled("Passed", version) for version in versions),
                    *(get(f"/apis/{extension.group}/{version}/foos") for version in versions),
                ],
            )
        finally:
            await extension.close()


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


# services


async def test_what_a_service_lacks_is_said_alike(extension: AggregatedGroup) -> None:
    pair, group = extension.pair, extension.group
    port = {"name": "web", "port": 443}
    services = "/api/v1/namespaces/{ns}/services"
    slices = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"
    endpoint = {"addresses": ["10.1.2.3"], "conditions": {"ready": False}}
    silent = {
        "metadata": {"name": "silent", "labels": {"kubernetes.io/service-name": "silent"}},
        "addressType": "IPv4",
        "ports": [{"name": "web", "port": 443}],
        "endpoints": [endpoint],
    }
    await run_case(
        pair,
        [
            *(post(services, {"metadata": {"name": name}, "spec": {"ports": [port]}}, quiet=True)
              for name in ("plain", "silent", "late")),
            post(slices, silent, quiet=True),
        ],
    )  # fmt: skip
    await extension.register("v1", service="plain", port=444)
    await extension.register("v2", service="plain", port=443)
    await extension.register("v3", service="silent", port=443)
    await extension.register("v4", service="later", port=443)
    await run_case(
        pair,
        [
            extension.settled("ServicePortError", "v1"),
            extension.settled("EndpointsNotFound", "v2"),
            extension.settled("MissingEndpoints", "v3"),
            extension.settled("ServiceNotFound", "v4"),
            get(f"/apis/{group}/v4/foos"),
            # What is missing comes later, and is noticed.
            post(services, {"metadata": {"name": "later"}, "spec": {"ports": [port]}}, quiet=True),
            extension.settled("EndpointsNotFound", "v4"),
        ],
    )
