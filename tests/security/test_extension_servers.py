"""What an extension server says about itself reaches every client, and must not make discovery unreadable to them.

Covers: kubewright.apiserver.proxy.aggregator, kubewright.apiserver.proxy.discovery_documents
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from tests.planes import Plane
from tests.security.callers import Caller, caller
from tests.security.spending import spending
from tests.stub_server import ReceivedRequest, StubResponse, StubServer

from kubewright.apiserver.proxy.discovery_documents import aggregated_version, unaggregated_version
from kubewright.apiserver.wire.responses import encode_json
from kubewright.testing import time_limit

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
THINGS = {
    "resource": "things",
    "responseKind": {"group": "", "version": "", "kind": "Thing"},
    "scope": "Namespaced",
    "singularResource": "thing",
    "verbs": ["get"],
}
VERSIONS: dict[str, Any] = {
    "resources that are text": {"version": "v1", "resources": "things"},
    "resources that are numbers": {"version": "v1", "resources": [1, 2]},
    "names that are numbers": {"version": "v1", "resources": [{"resource": 5}]},
    "verbs that are a number": {"version": "v1", "resources": [{**THINGS, "verbs": 5}]},
    "a short name that is text": {"version": "v1", "resources": [{**THINGS, "shortNames": "t"}]},
    "subresources that are an object": {"version": "v1", "resources": [{**THINGS, "subresources": {"a": 1}}]},
    "a version that is a number": {"version": 1, "resources": []},
    "no object": 5,
}


@pytest.fixture
async def stub() -> AsyncIterator[StubServer]:
    async with StubServer() as server:
        yield server


@pytest.fixture
async def admin(plane: Plane) -> Caller:
    return await caller(plane, "aggregating", "system:masters")


@pytest.fixture
async def group(admin: Caller, stub: StubServer, namespace: str) -> AsyncIterator[str]:
    """A group that the stub serves, in the version v1."""
    name = f"{namespace}.example.io"
    service = {"metadata": {"name": "stub"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    assert (await admin.send("POST", f"/api/v1/namespaces/{namespace}/services", service)).code == 201
    spec = {
        "group": name,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "insecureSkipTLSVerify": True,
        "service": {"namespace": namespace, "name": "stub", "port": stub.port},
    }
    stub.handlers["/"] = lambda received: discovery(received, name, {"version": "v1", "resources": [THINGS]})
    answer = await admin.send("POST", APISERVICES, {"metadata": {"name": f"v1.{name}"}, "spec": spec})
    assert answer.code == 201, answer.message
    yield name
    await admin.send("DELETE", f"{APISERVICES}/v1.{name}")


def discovery(received: ReceivedRequest, group: str, version: Any) -> StubResponse:
    if received.path != "/apis":
        return StubResponse({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/v1"})
    tree = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "items": [{"metadata": {"name": group}, "versions": [version]}],
    }
    return StubResponse(tree, 200, AGGREGATED)


async def until_described(admin: Caller, group: str, wanted: dict[str, Any]) -> None:
    """Return as soon as the group's version is so in the discovery of all groups."""
    seen: list[Any] = []
    try:
        async with time_limit(60):
            while seen != [wanted]:
                answer = await admin.send("GET", "/apis", headers=[("Accept", AGGREGATED)])
                groups = {item["metadata"]["name"]: item["versions"] for item in answer.body["items"]}
                seen = groups.get(group, [])
    except TimeoutError:
        raise AssertionError(f"after a minute the group is still {seen}") from None


async def test_a_description_of_wrong_types_is_shown_to_nobody(admin: Caller, stub: StubServer, group: str) -> None:
    """As on a kube-apiserver the version is stale; its clients could not read the other groups either."""
    good = {"version": "v1", "resources": [THINGS]}
    wrong = [VERSIONS[case] for case in ("resources that are numbers", "verbs that are a number", "no object")]
    for number, version in enumerate((good, wrong[0], good, wrong[1], good, wrong[2])):
        stub.handlers["/"] = partial(discovery, group=group, version=version)
        change = {"spec": {"versionPriority": 20 + number}}  # it is asked again
        await admin.send("PATCH", f"{APISERVICES}/v1.{group}", change, content_type="application/merge-patch+json")
        shown = {**good, "freshness": "Current"} if version is good else {"version": "v1", "freshness": "Stale"}
        await until_described(admin, group, shown)


@pytest.mark.parametrize("case", VERSIONS)
def test_a_description_of_wrong_types_is_none(case: str) -> None:
    document = {"items": [{"metadata": {"name": "g"}, "versions": [VERSIONS[case]]}]}

    assert aggregated_version(encode_json(document), "g", "v1") is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"resources": [5]}',
        b'{"resources": [{"name": 5}]}',
        b'{"resources": {}}',
        b"[" * 100_000,
        b"\xff",
        b"1" * 5000,
    ],
    ids=["numbers", "a number for a name", "an object", "deep", "no UTF-8", "a long number"],
)
def test_a_list_of_wrong_types_is_none(body: bytes) -> None:
    assert unaggregated_version(body, "v1") is None


def test_many_subresources_take_time_in_proportion() -> None:
    def calls(count: int) -> int:
        body = encode_json({"resources": [{"name": f"things/{number}"} for number in range(count)]})
        with spending() as spent:
            tree = unaggregated_version(body, "v1")
        assert tree is not None
        assert len(tree["resources"][0]["subresources"]) == count
        return spent.calls

    assert calls(4000) < 5 * calls(1000)
