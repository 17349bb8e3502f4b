"""The protobuf form of the OpenAPI v2 document has the bytes that kube-apiserver makes of the same document.

Covers: kubewright.apiserver.openapi
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import pytest
import yaml
from tests.differential.servers.server_pair import ServerClient, open_server

from kubewright.apiserver.openapi import gnostic
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.planes.real import RealCluster

pytestmark = pytest.mark.real


@pytest.fixture
async def server(real_binaries: Binaries) -> AsyncIterator[ServerClient]:
    """A server of its own: definitions that others install come and go between two requests."""
    async with RealCluster(start_timeout=300, version=real_binaries.version) as cluster:
        apiserver = open_server(cluster.kubeconfig)
        yield apiserver
        await apiserver.session.close()


async def test_what_it_encodes_are_the_bytes_of_kube_apiserver(
    server: ServerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    readable = await server.send("GET", "/openapi/v2", None, {"Accept": "application/json"}, 60)
    binary = await server.send("GET", "/openapi/v2", None, {"Accept": gnostic.MEDIA_TYPE}, 60)
    # Values of no fixed type are YAML there and JSON, which is YAML, here: written the same way for once.
    monkeypatch.setattr(gnostic, "encode_json", _as_yaml)

    ours = gnostic.encode_document(json.loads(readable.body))

    assert binary.headers["Content-Type"] == gnostic.MEDIA_TYPE
    same = ours == binary.body  # a difference of megabytes is not to be shown
    assert same


def _as_yaml(value: object) -> bytes:
    text = yaml.safe_dump(value, sort_keys=False, default_flow_style=False, width=1_000_000).removesuffix("...\n")
    return re.sub(r"(^|(?<=: )|(?<=- ))''$", '""', text, flags=re.MULTILINE).removesuffix("\n").encode()
