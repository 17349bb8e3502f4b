"""The OpenAPI documents: ours are those of the real API server, of built-in kinds and of custom resources.

The definitions are in tests/unit/apiserver/openapi/definitions.yaml. What the real server publishes of them is kept
beside them, so that the unit tests need none; KUBEWRIGHT_RECORD=1 writes it anew.

Covers: kubewright.apiserver.openapi
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubewright import Config, connect
from kubewright._base.yaml import load_all
from kubewright.apiserver.catalog import builtin_groups
from kubewright.apiserver.openapi.builtin import builtin_paths
from kubewright.client.client import Client
from kubewright.client.transport.transport import HttpRequest, HttpResponse
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.testing import time_limit

pytestmark = [pytest.mark.real, pytest.mark.slow]

Tree = dict[str, Any]

FOLDER = Path(__file__).parents[2] / "unit" / "apiserver" / "openapi"
RECORD = os.environ.get("KUBEWRIGHT_RECORD") == "1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "openapi.example.com"
VERSIONS = ("v1", "v1alpha1", "v3")


async def get(client: Client, path: str, *headers: tuple[str, str]) -> HttpResponse:
    """A plain request; `path` may have a query."""
    path, _, query = path.partition("?")
    pairs = tuple((name, value) for name, _, value in (one.partition("=") for one in query.split("&") if one))
    request = HttpRequest(method="GET", path=path, query=pairs, headers=headers, body=None, timeout=20)
    return await client.transport.send(request)


async def tree(client: Client, path: str) -> Tree:
    found: Tree = json.loads((await get(client, path, ("Accept", "application/json"))).body)
    return found


async def index(client: Client) -> dict[str, str]:
    paths = (await tree(client, "/openapi/v3"))["paths"]
    return {path: one["serverRelativeURL"] for path, one in paths.items()}


async def define(client: Client) -> None:
    """Make the definitions, and wait for their documents."""
    crds = list(load_all((FOLDER / "definitions.yaml").read_text()))
    for crd in crds:
        body = json.dumps(crd).encode()
        headers = (("Content-Type", "application/json"),)
        request = HttpRequest(method="POST", path=DEFINITIONS, query=(), headers=headers, body=body, timeout=20)
        answer = await client.transport.send(request)
        assert answer.status == 201, answer.body
    wanted = {
        f"com.example.openapi.{version['name']}.{crd['spec']['names']['kind']}"
        for crd in crds
        for version in crd["spec"]["versions"]
        if version["served"]
    }
    async with time_limit(60):
        while True:
            found = (await tree(client, "/openapi/v2"))["definitions"].keys()
            known = await index(client)
            if wanted <= found and all(f"apis/{GROUP}/{version}" in known for version in VERSIONS):
                documents = [await tree(client, f"/openapi/v3/apis/{GROUP}/{version}") for version in VERSIONS]
                if wanted <= {name for document in documents for name in document["components"]["schemas"]}:
                    return


async def forget(client: Client) -> None:
    for crd in load_all((FOLDER / "definitions.yaml").read_text()):
        path = f"{DEFINITIONS}/{crd['metadata']['name']}"
        request = HttpRequest(method="DELETE", path=path, query=(), headers=(), body=None, timeout=20)
        await client.transport.send(request)


@pytest.fixture(scope="module")
async def real(real_cluster: RealCluster) -> AsyncIterator[Client]:
    async with connect(Config.load(kubeconfig=str(real_cluster.kubeconfig))) as client:
        await define(client)
        yield client
        await forget(client)


@pytest.fixture(scope="module")
async def ours(embedded_cluster: EmbeddedCluster) -> AsyncIterator[Client]:
    await define(embedded_cluster.client)
    yield embedded_cluster.client
    await forget(embedded_cluster.client)


def belongs(path: str) -> bool:
    """Whether a path of a document is of a built-in kind or of this file; other tests have definitions of their own."""
    group = path.strip("/").split("/")[1:2]
    known = {one["metadata"].get("name", "") for one in builtin_groups()}
    return not path.startswith("/apis/") or not group or group[0] in (*known, GROUP)


async def test_every_document_is_that_of_the_real_server(real: Client, ours: Client) -> None:
    theirs, mine = await index(real), await index(ours)
    wanted = {*builtin_paths(), *(f"apis/{GROUP}/{version}" for version in VERSIONS)}
    assert wanted == {path for path in theirs if belongs(f"/{path}")} == {path for path in mine if belongs(f"/{path}")}
    for path in sorted(wanted):
        assert await tree(ours, mine[path]) == await tree(real, theirs[path]), path
    if RECORD:
        recorded = {version: await tree(real, f"/openapi/v3/apis/{GROUP}/{version}") for version in VERSIONS}
        keep({version: own(found["components"]["schemas"]) for version, found in recorded.items()}, "v3")


async def test_the_document_of_the_older_form_is_that_of_the_real_server(real: Client, ours: Client) -> None:
    theirs, mine = await tree(real, "/openapi/v2"), await tree(ours, "/openapi/v2")
    for path in {*mine["paths"], *theirs["paths"]}:
        if belongs(path):
            assert mine["paths"].get(path) == theirs["paths"].get(path), path
    for name in {*mine["definitions"], *theirs["definitions"]}:
        if name.startswith(("io.k8s.", "com.example.openapi.")):
            assert mine["definitions"].get(name) == theirs["definitions"].get(name), name
    assert mine["parameters"] == theirs["parameters"]
    for part in ("swagger", "info", "security", "securityDefinitions"):
        assert mine[part] == theirs[part]
    if RECORD:
        keep({"all": own(theirs["definitions"])}, "v2")


def own(schemas: Tree) -> Tree:
    return {name: schema for name, schema in schemas.items() if name.startswith("com.example.openapi.")}


def keep(recorded: Tree, form: str) -> None:
    file = FOLDER / "documents.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**known, form: recorded}, ensure_ascii=False, indent=1) + "\n")


@pytest.mark.parametrize("path", ["/openapi/v3/apis/apps/v1", f"/openapi/v3/apis/{GROUP}/v1", "/openapi/v2"])
async def test_documents_are_answered_as_the_real_server_answers_them(real: Client, ours: Client, path: str) -> None:
    json_only = ("Accept", "application/json")
    for headers in ((), (json_only,), (("Accept", "*/*"),), (("Accept", "application/yaml"),)):
        one, other = await get(real, path, *headers), await get(ours, path, *headers)
        assert (one.status, one.headers.get("content-type")) == (other.status, other.headers.get("content-type"))
    for client in (real, ours):
        tag = (await get(client, path, json_only)).headers["etag"]
        assert len(tag) == 130
        # Definitions of other tests may come and go meanwhile; then it is another document, with another tag.
        while (again := await get(client, path, json_only, ("If-None-Match", tag))).status == 200:
            assert again.headers["etag"] != tag
            tag = again.headers["etag"]
        assert again.status == 304


async def test_a_hash_is_part_of_the_address(real: Client, ours: Client) -> None:
    for client in (real, ours):
        address = (await index(client))["apis/apps/v1"]
        kept = await get(client, address)
        assert (kept.status, kept.headers["cache-control"]) == (200, "public, immutable")
        moved = await get(client, "/openapi/v3/apis/apps/v1?hash=OLD")
        assert (moved.status, moved.headers["location"]) == (301, address)
        assert (await get(client, "/openapi/v3/apis/none.example/v1")).status == 404
