"""A long list has the bytes that it would have as a whole, in every media type."""

from __future__ import annotations

import re
import sys

import pytest
from tests.builders.definitions import definition_tree

from kubewright import Client
from kubewright.api import Dynamic, from_tree
from kubewright.apiserver.verbs import transform
from kubewright.client.transport.transport import HttpRequest
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.k8s.core.v1 import ConfigMap

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
THING = Dynamic("example.io/v1", "Thing")
AGE = re.compile(rb"\b\d+[smhd](\d+[smh])?\b")
"""How old a row of a table is; a second may pass between the two lists."""
MAPS = "/api/v1/namespaces/default/configmaps"
THINGS = "/apis/example.io/v1/things"
TABLE = "as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@pytest.fixture
async def client(embedded_cluster: EmbeddedCluster) -> Client:
    for number in range(5):
        # Each is more than one piece, so that there is something to put together.
        data = {"a": f"{number}\n" * 60_000, "b": "- : #"}
        await embedded_cluster.client.apply(ConfigMap.named(f"long-{number}", data=data), namespace="default")
    client = embedded_cluster.client
    await install_crds(client, definition_tree(kind="Thing"))
    for number in range(3):
        await client.apply(from_tree(THING, {"metadata": {"name": f"thing-{number}"}}), namespace="default")
    return client


@pytest.mark.parametrize("path", [MAPS, FLOWS, THINGS])
@pytest.mark.parametrize("query", [(), (("pretty", "true"),), (("includeObject", "Object"),)], ids=str)
@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        f"application/json;{TABLE}",
        f"application/yaml;{TABLE}",
        f"application/json;{PARTIAL}",
        f"application/vnd.kubernetes.protobuf;{PARTIAL}",
    ],
)
async def test_a_long_list_is_the_same_as_a_short_one(
    client: Client, monkeypatch: pytest.MonkeyPatch, accept: str, query: tuple[tuple[str, str], ...], path: str
) -> None:
    request = HttpRequest(method="GET", path=path, query=query, headers=(("Accept", accept),))
    found = []
    for long in (sys.maxsize, 0):
        monkeypatch.setattr(transform, "LONG_LIST", long)
        answer = await client.transport.send(request)
        found.append((answer.status, answer.headers["content-type"], AGE.sub(b"age", answer.body)))

    assert found[0] == found[1]
    has_encoding = path != THINGS or not accept.endswith("protobuf")  # custom resources have none in protobuf
    assert found[0][0] == (200 if has_encoding else 406)


async def test_a_client_reads_a_list_of_megabytes(client: Client) -> None:
    for number in range(5):
        data = {"a": "x" * 900_000}
        await client.apply(ConfigMap.named(f"large-{number}", data=data), namespace="default")

    found = await client.list(ConfigMap, namespace="default")

    assert {f"large-{number}" for number in range(5)} <= {each.metadata.name for each in found}
