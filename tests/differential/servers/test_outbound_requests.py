"""Requests that API servers send to kubelets, conversion webhooks and extension servers, and what they make of the
responses.

Covers: kubewright.apiserver.outbound, kubewright.apiserver.proxy, kubewright.apiserver.apiextensions
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest
from tests.builders.definitions import definition_tree, version_tree
from tests.builders.pods import container_tree, pod_tree
from tests.differential.servers.server_pair import Request, ServerPair, apply, get, merge, post, run_case
from tests.stub_server import ReceivedRequest, StubResponse, StubServer

pytestmark = pytest.mark.real

JSON = dict[str, Any]
PODS = "/api/v1/namespaces/{ns}/pods"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
async def stub() -> AsyncIterator[StubServer]:
    async with StubServer() as server:
        yield server


# logs


@pytest.fixture
async def node(pair: ServerPair, stub: StubServer) -> AsyncIterator[str]:
    """A node whose kubelet answers with the code a container is named after."""

    def log(received: ReceivedRequest) -> StubResponse:
        code = re.search(r"/c(\d+)(?:\?|$)", received.path)
        if code is None:
            return StubResponse(f"one\ntwo\n{received.path}\n".encode(), 200, "text/plain")
        return StubResponse(b"the kubelet says so", int(code[1]), "text/plain")

    stub.handlers["/containerLogs/"] = log
    name = f"pair-{uuid4().hex[:8]}"
    await pair.both("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": stub.port}},
    }
    await run_case(pair, [Request("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, MERGE, quiet=True)])
    yield name
    await pair.both("DELETE", f"/api/v1/nodes/{name}")


def create_pod(name: str, *containers: str, **spec: Any) -> Request:
    tree = pod_tree(name, containers=[container_tree(each, image="i") for each in containers], **spec)
    return post(PODS, tree, quiet=True, until=lambda answer: answer["kind"] == "Pod")


QUERIES = [
    "", "?container=x", "?tailLines=-1", "?tailLines=x", "?tailLines=", "?limitBytes=0", "?sinceSeconds=0", "?follow=",
    "?sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z", "?sinceTime=soon", "?stream=Stdout", "?follow=false&previous=0",
    "?follow=true&previous=1&timestamps=yes&tailLines=5&limitBytes=9&sinceSeconds=7",
]  # fmt: skip


async def test_logs_are_fetched_and_refused_alike(pair: ServerPair, node: str) -> None:
    codes = [f"c{code}" for code in (400, 403, 404, 500, 501, 503)]
    await run_case(
        pair,
        [
            create_pod("one", "c", nodeName=node),
            create_pod("many", "c", *codes, nodeName=node),
            create_pod("two", "a", "b", initContainers=[{"name": "i", "image": "i"}], schedulerName="nobody"),
            create_pod("lost", "c", nodeName="no-such-node"),
            *(get(f"{PODS}/one/log{query}") for query in QUERIES),
            *(get(f"{PODS}/many/log?container={code}") for code in codes),
            get(f"{PODS}/two/log"),
            get(f"{PODS}/two/log?container=a"),
            get(f"{PODS}/none/log"),
            get(f"{PODS}/lost/log"),
            post(f"{PODS}/one/log", {}),
            post(f"{PODS}/none/exec?command=ls", {}),
            post(f"{PODS}/many/exec?command=ls", {}),
            post(f"{PODS}/two/exec?command=ls&container=a", {}),
            post(f"{PODS}/one/attach", {}),
            post(f"{PODS}/two/portforward", {}),
            get("/api/v1/namespaces/{ns}/services/none/proxy/"),
            get("/api/v1/namespaces/{ns}/services/ftp:none:1/proxy/"),
            get("/api/v1/nodes/none/proxy/pods"),
        ],
    )


# conversion


def converted(received: ReceivedRequest) -> list[JSON]:
    """`spec.host` in v1 is `spec.address` in v2."""
    request = received.tree["request"]
    found = copy.deepcopy(request["objects"])
    for tree in found:
        tree["apiVersion"] = request["desiredAPIVersion"]
        names = ("host", "address") if tree["apiVersion"].endswith("v2") else ("address", "host")
        if names[0] in (tree.get("spec") or {}):
            tree["spec"][names[1]] = tree["spec"].pop(names[0])
    return found  # type: ignore[no-any-return]  # JSON


def conversion(
    change: Callable[[JSON], None] = lambda tree: None, **response: Any
) -> Callable[[ReceivedRequest], StubResponse]:
    def answer(received: ReceivedRequest) -> StubResponse:
        objects = converted(received)
        for tree in objects:
            change(tree)
        said = {"uid": received.tree["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
        return StubResponse({**kind, "response": {**said, **response}})

    return answer


CONVERSIONS: dict[str, Callable[[ReceivedRequest], StubResponse]] = {
    "fine": conversion(),
    "failed": conversion(result={"status": "Failed", "message": "cannot do it"}),
    "failed-silently": conversion(result={"status": "Failed"}),
    "without-result": conversion(result=None),
    "without-objects": conversion(convertedObjects=[]),
    "other-uid": conversion(uid="other"),
    "junk": lambda received: StubResponse(b"{junk"),
    "code": lambda received: StubResponse(b"broken", 500, "text/plain"),
    "other-name": conversion(lambda tree: tree["metadata"].update(name="other")),
    "other-kind": conversion(lambda tree: tree.update(kind="Other")),
    "other-version": conversion(lambda tree: tree.update(apiVersion="pair.example.io/v9")),
    "other-owner": conversion(lambda tree: tree["metadata"].update(uid="x")),
    "labels": conversion(lambda tree: tree["metadata"].update(labels={"new": "label"}, generation=77)),
}


def definition(group: str, stub: StubServer) -> JSON:
    def version(name: str, member: str) -> JSON:
        spec = {"type": "object", "properties": {member: {"type": "string"}}}
        return version_tree(name, schema={"type": "object", "properties": {"spec": spec}}, storage=name == "v1")

    client = {"url": f"{stub.url}/convert", "caBundle": stub.bundle}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
    return definition_tree(
        "things",
        group,
        kind="Thing",
        versions=[version("v1", "host"), version("v2", "address")],
        conversion={"strategy": "Webhook", "webhook": webhook},
    )


async def test_a_converter_is_used_and_checked_alike(pair: ServerPair, stub: StubServer) -> None:
    group = f"{pair.namespace}.example.io"
    stub.handlers["/convert"] = CONVERSIONS["fine"]
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await pair.both("POST", definitions, definition(group, stub))
    first, second = (f"/apis/{group}/{version}/namespaces/{{ns}}/things" for version in ("v1", "v2"))
    try:
        await run_case(
            pair,
            [
                post(first, _thing(group, "v1", "a", "host"), quiet=True, until=lambda tree: "spec" in tree),
                get(f"{second}/a", until=lambda tree: isinstance(tree, dict) and "spec" in tree),
                post(second, _thing(group, "v2", "b", "address")),
                get(f"{first}/b"),
                merge(f"{second}/a", {"spec": {"address": "new"}}),
                get(f"{first}/a"),
            ],
        )
        for answer in CONVERSIONS.values():
            stub.handlers["/convert"] = answer
            await run_case(pair, [get(f"{second}/a")])
    finally:
        stub.handlers["/convert"] = CONVERSIONS["fine"]
        await pair.both("DELETE", f"{definitions}/things.{group}")


async def test_a_converter_may_have_the_name_of_its_authority(pair: ServerPair) -> None:
    group = f"{pair.namespace}-namesake.example.io"
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    async with StubServer(namesakes=True) as stub, StubServer(namesakes=True) as other:
        stub.handlers["/convert"] = CONVERSIONS["fine"]
        trusted = definition(group, stub)
        await pair.both("POST", definitions, trusted)
        first, second = (f"/apis/{group}/{version}/namespaces/{{ns}}/things" for version in ("v1", "v2"))
        bundle = {"conversion": {"webhook": {"clientConfig": {"caBundle": other.bundle}}}}
        try:
            await run_case(
                pair,
                [
                    post(first, _thing(group, "v1", "a", "host"), quiet=True, until=lambda tree: "spec" in tree),
                    get(f"{second}/a", until=lambda tree: isinstance(tree, dict) and "spec" in tree),
                    merge(f"{definitions}/things.{group}", {"spec": bundle}, quiet=True),
                    # Go says besides which authority has the name.
                    get(
                        f"{second}/a",
                        until=lambda tree: "signed by unknown authority" in str(tree),
                        ignore=("message",),
                    ),
                ],
            )
            assert stub.received
        finally:
            await pair.both("DELETE", f"{definitions}/things.{group}")


async def test_fields_are_owned_alike_in_all_versions(pair: ServerPair, stub: StubServer) -> None:
    group = f"{pair.namespace}-owned.example.io"
    stub.handlers["/convert"] = CONVERSIONS["fine"]
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await pair.both("POST", definitions, definition(group, stub))
    first, second = (f"/apis/{group}/{version}/namespaces/{{ns}}/things/a" for version in ("v1", "v2"))

    def intent(version: str, *members: str, label: str = "") -> JSON:
        tree = _thing(group, version, "a", *members)
        return tree if not label else {**tree, "metadata": {"name": "a", "labels": {"who": label}}}

    other = {**intent("v2", "address"), "spec": {"address": "other"}}
    try:
        await run_case(
            pair,
            [
                apply(first, intent("v1", "host"), manager="one", quiet=True, until=lambda tree: "spec" in tree),
                get(second, until=lambda tree: isinstance(tree, dict) and "spec" in tree),
                apply(second, intent("v2", "address"), manager="two"),
                apply(second, other, manager="two"),
                apply(second, other, manager="two", force=True),
                apply(first, intent("v1", label="one"), manager="one"),
                apply(second, intent("v2", "address"), manager="one", force=True),
                apply(first, intent("v1"), manager="one"),
                merge(second, {"spec": {"address": "new"}}),
                apply(second, intent("v2"), manager="two"),
                get(first),
            ],
        )
        stub.handlers["/convert"] = CONVERSIONS["failed"]
        await run_case(pair, [apply(first, intent("v1", "host"), manager="one"), merge(first, {"spec": {"host": "x"}})])
        stub.handlers["/convert"] = CONVERSIONS["fine"]
        await run_case(pair, [get(first), get(second)])
    finally:
        stub.handlers["/convert"] = CONVERSIONS["fine"]
        await pair.both("DELETE", f"{definitions}/things.{group}")


def _thing(group: str, version: str, name: str, *members: str) -> JSON:
    return {
        "apiVersion": f"{group}/{version}",
        "kind": "Thing",
        "metadata": {"name": name},
        "spec": dict.fromkeys(members, "h"),
    }


# extension servers


@pytest.fixture
async def extension(pair: ServerPair, stub: StubServer, dead_port: int) -> AsyncIterator[str]:
    """An aggregated group: v1 answers, v2 has no service, v3 refuses connections."""
    group = f"{pair.namespace}.example.io"

    def answer(received: ReceivedRequest) -> StubResponse:
        if received.path == f"/apis/{group}/v1":
            kind = {"name": "foos", "singularName": "foo", "namespaced": True, "kind": "Foo", "verbs": ["get"]}
            return StubResponse({"kind": "APIResourceList", "groupVersion": f"{group}/v1", "resources": [kind]})
        hidden = ("host", "x-forwarded", "accept", "user-agent", "audit-id", "x-remote-extra")
        headers = sorted(pair for pair in received.headers if not pair[0].startswith(hidden))
        said = {"method": received.method, "path": received.path, "headers": headers, "body": received.body.decode()}
        return StubResponse(said, 418 if "teapot" in received.path else 200)

    stub.handlers[f"/apis/{group}/v1"] = answer
    service = {"metadata": {"name": "ext"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    await pair.both("POST", "/api/v1/namespaces/{ns}/services", service)
    for version, name, port in (("v1", "ext", stub.port), ("v2", "none", 443), ("v3", "ext", dead_port)):
        spec = {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "insecureSkipTLSVerify": True,
            "service": {"name": name, "namespace": pair.namespace, "port": port},
        }
        body = {"metadata": {"name": f"{version}.{group}"}, "spec": spec}
        await pair.both("POST", "/apis/apiregistration.k8s.io/v1/apiservices", body)
    yield group
    for version in ("v1", "v2", "v3"):
        await pair.both("DELETE", f"/apis/apiregistration.k8s.io/v1/apiservices/{version}.{group}")


async def test_an_extension_server_is_passed_requests_alike(pair: ServerPair, extension: str) -> None:
    services = "/apis/apiregistration.k8s.io/v1/apiservices"
    path = f"/apis/{extension}"
    for version, until in (("v1", "Passed"), ("v2", "ServiceNotFound"), ("v3", "FailedDiscoveryCheck")):
        request = get(
            f"{services}/{version}.{extension}",
            until=lambda tree, reason=until: reason in json.dumps(tree),
            ignore=("metadata.managedFields",),
        )
        await run_case(pair, [request])
    await run_case(
        pair,
        [
            # Who passes requests on hears of a service that is available a moment after its status says so.
            get(
                f"{path}/v1/namespaces/{{ns}}/foos?limit=3",
                headers={"X-Custom": "c", "X-Remote-User": "evil"},
                until=lambda tree: isinstance(tree, dict) and "method" in tree,
            ),
            post(f"{path}/v1/namespaces/{{ns}}/foos", {"a": 1}),
            get(f"{path}/v1/teapot"),
            get(f"{path}/v1"),
            get(f"{path}/v2/foos", until=lambda tree: "404" not in str(tree)),
            get(f"{path}/v3/foos", until=lambda tree: "404" not in str(tree)),
            get(path),
        ],
    )
