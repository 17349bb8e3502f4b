"""Objects as rows of a table: ours and the real API server agree, kind by kind and column by column.

The objects are in tests/unit/apiserver/printers/objects.yaml, the columns of custom resources in columns.yaml. What the
real server prints is kept beside them, so that the unit tests need none; KUBEWRIGHT_RECORD=1 writes it anew.

Covers: kubewright.apiserver.printers
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kubewright import Config, connect
from kubewright._base.yaml import load_all
from kubewright.api.times import format_micro_time
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Column, Resource
from kubewright.apiserver.printers import (
    cells,
    column_definitions,
    row_conditions,
    row_order,
    scale_cells,
    scale_columns,
)
from kubewright.apiserver.printers.custom import custom_cells
from kubewright.client.client import Client
from kubewright.client.transport.transport import HttpRequest
from kubewright.cluster.planes.real import RealCluster
from kubewright.testing import time_limit

pytestmark = [pytest.mark.real, pytest.mark.slow]

Tree = dict[str, Any]

FOLDER = Path(__file__).parents[2] / "unit" / "apiserver" / "printers"
NAMESPACE = "tables"
RECORD = os.environ.get("KUBEWRIGHT_RECORD") == "1"
MERGE = "application/merge-patch+json"
JSON = "application/json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# In its first version an autoscaler has not the order of its metrics, nor what none of them says.
OLD_AUTOSCALERS = ("scaler-old",)


class Server:
    """Plain requests to the real server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(
        self, method: str, path: str, tree: Any = None, *, kind: str = JSON, accept: str = JSON
    ) -> tuple[int, Tree]:
        path, _, query = path.partition("?")
        request = HttpRequest(
            method=method,
            path=path,
            query=tuple((name, value) for name, _, value in (one.partition("=") for one in query.split("&") if one)),
            headers=(("Accept", accept), ("Content-Type", kind)),
            body=None if tree is None else json.dumps(tree).encode(),
            timeout=20,
        )
        answer = await self._client.transport.send(request)
        decoded: Tree = json.loads(answer.body) if answer.body.startswith(b"{") else {}
        return answer.status, decoded

    async def table(self, path: str) -> tuple[Tree, datetime, datetime]:
        """A table with whole objects in it, and the moments around its making."""
        before = datetime.now(UTC)
        status, tree = await self.ask("GET", f"{path}?includeObject=Object", accept=TABLE)
        assert status == 200, tree
        return tree, before, datetime.now(UTC)


def between(before: datetime, after: datetime) -> list[datetime]:
    """Moments, one of which shows the ages as the server does that answered at some time between these two."""
    seconds = int((after - before).total_seconds())
    return [before + timedelta(seconds=second) for second in range(seconds + 1)] + [after]


def at(moment: datetime) -> Callable[[], datetime]:
    """A clock that stands."""
    return lambda: moment


def catalog() -> Catalog:
    return Catalog(ServiceAllocator())


def path_of(resource: Resource, name: str = "", *, everywhere: bool = False) -> str:
    kind = resource.kind
    root = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
    space = f"/namespaces/{NAMESPACE}" if resource.namespaced and not everywhere else ""
    return f"{root}{space}/{resource.plural}" + (f"/{name}" if name else "")


def resource_of(obj: Tree) -> Resource:
    return next(one for one in catalog() if (one.kind.api_version, one.kind.kind) == (obj["apiVersion"], obj["kind"]))


def objects() -> list[Tree]:
    (found,) = load_all((FOLDER / "objects.yaml").read_text())
    return found  # type: ignore[no-any-return] # it is a list of objects


async def create(server: Server, obj: Tree) -> None:
    """Create the object, write its status, and delete it if the table is to show it as terminating."""
    resource, name = resource_of(obj), obj["metadata"]["name"]
    status = obj.pop("status", None)
    code, answer = await server.ask("POST", path_of(resource), obj)
    assert code == 201, f"{obj['kind']} {name}: {answer.get('message')}"
    if status is not None:
        path = f"{path_of(resource, name)}/status"
        code, answer = await server.ask("PATCH", path, {"status": status}, kind=MERGE)
        assert code == 200, answer
    if obj["metadata"].get("finalizers") or (obj["kind"] == "Namespace" and obj["spec"]["finalizers"]):
        code, answer = await server.ask("DELETE", path_of(resource, name))
        assert code in (200, 202), answer


async def remove(server: Server, obj: Tree) -> None:
    """At once: others share this cluster."""
    resource, name = resource_of(obj), obj["metadata"]["name"]
    path = path_of(resource, name)
    await server.ask("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    if obj["metadata"].get("finalizers"):
        await server.ask("PATCH", path, {"metadata": {"finalizers": None}}, kind=MERGE)
    if obj["kind"] == "Namespace":
        live = (await server.ask("GET", path))[1]
        await server.ask("PUT", f"{path}/finalize", {**live, "spec": {"finalizers": ["kubernetes"]}})


@pytest.fixture(scope="module")
async def server(real_cluster: RealCluster) -> AsyncIterator[Server]:
    async with connect(Config.load(kubeconfig=str(real_cluster.kubeconfig))) as client:
        server = Server(client)
        await server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield server
        await server.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


async def test_every_built_in_kind_is_printed_as_the_real_server_prints_it(server: Server) -> None:
    made = objects()
    names = {(obj["kind"], obj["metadata"]["name"]) for obj in made}
    recorded = []
    try:
        for obj in made:
            await create(server, obj)
        for resource in catalog():
            if "list" not in resource.verbs:
                continue
            table, before, after = await server.table(path_of(resource, everywhere=True))
            assert table["columnDefinitions"] == column_definitions(resource), resource.kind
            trees = [row["object"] for row in table["rows"] or ()]
            assert list(row_order(resource, trees, tree_of=dict)) == trees
            for row in table["rows"] or ():
                tree, name = row["object"], row["object"]["metadata"]["name"]
                if resource.kind.api_version == "autoscaling/v1" and name not in OLD_AUTOSCALERS:
                    continue
                moments = between(before, after)
                ours = [cells(resource, tree, now=at(moment)) for moment in moments]
                assert row["cells"] in ours, (resource.kind, row["cells"], ours)
                assert row.get("conditions", []) == row_conditions(resource, tree)
                if (resource.kind.kind, name) in names:
                    now = moments[ours.index(row["cells"])]
                    recorded.append({"now": format_micro_time(now), "cells": row["cells"], "object": told(tree)})
    finally:
        for obj in made:
            await remove(server, obj)
    assert {(one["object"]["kind"], one["object"]["metadata"]["name"]) for one in recorded} == names
    keep("rows.json", recorded)


def told(tree: Tree) -> Tree:
    """The object without what no row shows."""
    left_out = ("managedFields", "resourceVersion", "uid")
    meta = {name: value for name, value in tree["metadata"].items() if name not in left_out}
    return {**tree, "metadata": meta}


def keep(name: str, recorded: Any) -> None:
    """Write what the real server said, when that is asked for; else it must be there."""
    if RECORD:
        text = json.dumps(recorded, ensure_ascii=False, indent=1)
        (FOLDER / name).write_text(f"{text}\n")
    assert (FOLDER / name).exists()


async def test_the_scale_of_an_object_is_printed_as_the_real_server_prints_it(server: Server) -> None:
    obj = next(one for one in objects() if one["kind"] == "Deployment")
    resource = resource_of(obj)
    await create(server, obj)
    try:
        table, before, after = await server.table(f"{path_of(resource, 'deployment')}/scale")
    finally:
        await remove(server, obj)
    (row,) = table["rows"]
    assert table["columnDefinitions"] == scale_columns(resource)
    assert row["cells"] in [scale_cells(row["object"], now=at(moment)) for moment in between(before, after)]


async def test_printer_columns_find_what_the_real_server_finds(server: Server) -> None:
    (given,) = load_all((FOLDER / "columns.yaml").read_text())

    async def shown(kind: str) -> dict[str, Any]:
        columns = [{"name": f"c{index}", "type": kind, "jsonPath": path} for index, path in enumerate(given["paths"])]
        table, before, after = await custom_table(server, f"{kind}s", columns, given["spec"])
        (row,) = table["rows"]
        read = [Column(one["name"], kind, one["jsonPath"]) for one in columns]
        assert row["cells"] in [custom_cells(read, row["object"], moment) for moment in between(before, after)]
        return dict(zip(given["paths"], row["cells"][1:], strict=True))

    found = await asyncio.gather(*map(shown, given["types"]))
    recorded = dict(zip(given["types"], found, strict=True))
    keep("columns.json", recorded)


async def custom_table(server: Server, plural: str, columns: list[Tree], spec: Tree) -> tuple[Tree, datetime, datetime]:
    """What the real server prints of one custom resource with these columns."""
    group = "tables.kubewright.example"
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": plural.capitalize()}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [{**version, "additionalPrinterColumns": columns}],
        },
    }
    status, answer = await server.ask("POST", DEFINITIONS, definition)
    assert status == 201, answer
    try:
        path = f"/apis/{group}/v1/namespaces/{NAMESPACE}/{plural}"
        obj = {
            "apiVersion": f"{group}/v1",
            "kind": names["kind"],
            "metadata": {"name": "x", "labels": {"example.com/x": "label"}},
            "spec": spec,
        }
        async with time_limit(60):
            while (await server.ask("POST", path, obj))[0] != 201:
                pass  # until it is served
        return await server.table(f"{path}/x")
    finally:
        await server.ask("DELETE", f"{DEFINITIONS}/{plural}.{group}")
