"""What the API server makes of the objects it is given: ours and the real one agree, kind by kind.

The objects are in tests/unit/apiserver/builtin: created.yaml (the least and the most of each kind) and updated.yaml
(what a change to each endpoint may change). The answers of the real server are kept beside them, so that the unit tests
need none; KUBEWRIGHT_RECORD=1 writes them anew.

Covers: kubewright.apiserver.builtin
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.builders.admission import Admission

from kubewright import Client, Config, connect
from kubewright._base.yaml import load_all
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import apply_merge_patch
from kubewright.apiserver.builtin.defaults import apply_defaults
from kubewright.apiserver.builtin.field_selectors import unsupported_fields
from kubewright.apiserver.builtin.preparation.strategies import is_namespaced, prepare_for_create, prepare_for_update
from kubewright.apiserver.builtin.scale import scale_of
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.client.transport.transport import HttpRequest, HttpResponse
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s import documents

pytestmark = [pytest.mark.real, pytest.mark.slow]

Tree = dict[str, Any]

TABLES = Path(__file__).parents[2] / "unit" / "apiserver" / "builtin"
NAMESPACE = "builtin"
RECORD = os.environ.get("KUBEWRIGHT_RECORD") == "1"
MERGE = "application/merge-patch+json"
# Times in the tables are of 2024; any other is of this run.
NOW = re.compile(r"20(?!24)[0-9]{2}-[0-9-]{5}T[0-9:]{8}Z")
TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")


class Server:
    """Plain requests to the real server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(
        self,
        method: str,
        path: str,
        tree: Any = None,
        *,
        kind: str = "application/json",
        dry_run: bool = False,
        query: tuple[tuple[str, str], ...] = (),
    ) -> tuple[int, Tree]:
        answer = await self._send(method, path, tree, kind, (("dryRun", "All"),) if dry_run else query)
        decoded: Tree = json.loads(answer.body)
        return answer.status, decoded

    async def ask_with_warnings(self, method: str, path: str, tree: Tree) -> tuple[int, Tree, list[str]]:
        """A dry run, and what the server warns of."""
        answer = await self._send(method, path, tree, "application/json", (("dryRun", "All"),))
        return answer.status, json.loads(answer.body), list(answer.warnings)

    async def _send(
        self, method: str, path: str, tree: Any, kind: str, query: tuple[tuple[str, str], ...]
    ) -> HttpResponse:
        request = HttpRequest(
            method=method,
            path=path,
            query=query,
            headers=(("Accept", "application/json"), ("Content-Type", kind)),
            body=None if tree is None else json.dumps(tree).encode(),
            timeout=20,
        )
        return await self._client.transport.send(request)

    async def create(self, obj: Tree, *, dry_run: bool = False) -> Tree:
        """A new object; one of an earlier case is taken away first."""
        await self.remove(obj)
        status, answer = await self.ask("POST", path_of(obj), obj, dry_run=dry_run)
        assert status == 201, answer.get("message")
        return answer

    async def change(self, obj: Tree, subresource: str, patch: Tree) -> tuple[Tree, Tree]:
        """Patch, and tell what was there just before: controllers write as well."""
        path = path_of(obj, named=True)
        while True:
            before = (await self.ask("GET", path))[1]
            version = {"metadata": {"resourceVersion": before["metadata"]["resourceVersion"]}}
            body = apply_merge_patch(patch, version)
            status, after = await self.ask("PATCH", path + (f"/{subresource}" if subresource else ""), body, kind=MERGE)
            if status != 409:
                assert status == 200, after.get("message")
                return before, after

    async def remove(self, obj: Tree) -> None:
        """At once: nobody waits for finalizers here."""
        path = path_of(obj, named=True)
        status, live = await self.ask("GET", path)
        if status == 404:
            return
        await self.ask("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        if live["metadata"].get("finalizers"):
            await self.ask("PATCH", path, {"metadata": {"finalizers": None}}, kind=MERGE)
        if obj["kind"] == "Namespace":
            live = (await self.ask("GET", path))[1]
            await self.ask("PUT", f"{path}/finalize", {**live, "spec": {"finalizers": ["kubernetes"]}})


@cache
def served() -> dict[GroupVersionKind, tuple[str, bool]]:
    """The plural of every kind, and whether it is in namespaces."""
    return {
        GroupVersionKind(group["metadata"].get("name", ""), version["version"], resource["responseKind"]["kind"]): (
            resource["resource"],
            resource["scope"] == "Namespaced",
        )
        for group in documents.discovery()
        for version in group["versions"]
        for resource in version["resources"]
    }


def path_of(obj: Tree, *, named: bool = False) -> str:
    """Where objects of this kind are, or this one is."""
    gvk = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    plural, namespaced = served()[gvk]
    root = f"/apis/{gvk.api_version}" if gvk.group else "/api/v1"
    space = f"/namespaces/{NAMESPACE}" if namespaced else ""
    return f"{root}{space}/{plural}" + (f"/{obj['metadata']['name']}" if named else "")


def ours_created(obj: Tree, answer: Tree) -> Tree:
    """The object as we would store it, with what the real server made up."""
    gvk = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    tree = deepcopy(obj)
    apply_defaults(gvk, tree)
    for name in ("uid", "creationTimestamp"):
        tree["metadata"][name] = answer["metadata"][name]
    if is_namespaced(gvk):
        tree["metadata"]["namespace"] = NAMESPACE
    Admission(NAMESPACE).mutate(gvk, tree)
    user = {name: (answer.get("spec") or {}).get(name) for name in ("username", "uid", "groups", "extra")}
    prepare_for_create(gvk, tree, user=user)
    return tree


def ours_updated(before: Tree, patch: Tree, subresource: str, after: Tree) -> Tree:
    """The object as we would store it after the change."""
    gvk = GroupVersionKind.of(before["apiVersion"], before["kind"])
    tree: Tree = deepcopy(apply_merge_patch(before, patch))
    apply_defaults(gvk, tree)
    Admission(NAMESPACE).mutate(gvk, tree, old=before, subresource=subresource)
    if gvk.kind == "Service" and not subresource:
        allocator = ServiceAllocator()
        allocator.rebuild([before])
        allocator.assign(tree, before).keep()
    prepare_for_update(gvk, tree, before, subresource=subresource, now=newest_time(after))
    return tree


def newest_time(tree: Tree) -> str:
    """The moment of the last write, as it shows in conditions."""
    return max(re.findall(r"20[0-9]{2}-[0-9-]{5}T[0-9:]{8}Z", json.dumps({**tree, "metadata": {}})), default="")


def without_made_up(tree: Tree) -> Tree:
    """The tree without what differs from run to run."""
    text = NOW.sub("2024-05-01T10:00:00Z", TOKEN_VOLUME.sub("kube-api-access-xxxxx", json.dumps(tree)))
    uid = tree["metadata"].get("uid")
    told: Tree = json.loads(text.replace(uid, "uid") if uid else text)
    for name in ("uid", "creationTimestamp", "resourceVersion", "managedFields"):
        told["metadata"].pop(name, None)
    return told


@pytest.fixture(scope="module")
async def server(real_cluster: RealCluster) -> AsyncIterator[Server]:
    async with connect(Config.load(kubeconfig=str(real_cluster.kubeconfig))) as client:
        server = Server(client)
        await server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await server.ask("POST", path_of(account), account)
        yield server


async def test_created_objects_are_as_the_real_server_makes_them(server: Server) -> None:
    objects = list(load_all((TABLES / "created.yaml").read_text()))
    told: dict[str, Tree] = {}

    for obj in objects:
        # These would apply to the cases that follow, and for a while after they are gone.
        shared = obj["kind"] in ("LimitRange", "ResourceQuota", "ServiceCIDR")
        answer = await server.create(obj, dry_run=shared)
        name = f"{obj['apiVersion']} {obj['kind']} {obj['metadata']['name']}"
        told[name] = without_made_up(answer)
        await server.remove(obj)
        assert told[name] == without_made_up(ours_created(obj, answer)), name

    compare_or_record("created.json", told)


async def test_updated_objects_are_as_the_real_server_makes_them(server: Server) -> None:
    cases = list(load_all((TABLES / "updated.yaml").read_text()))
    told: dict[str, Tree] = {}

    for case in cases:
        await server.create(case["object"])
        before, after = await server.change(case["object"], case.get("subresource", ""), case["patch"])
        ours = ours_updated(before, case["patch"], case.get("subresource", ""), after)
        assert without_made_up(after) == without_made_up(ours), case["name"]
        told[case["name"]] = {"before": without_made_up(before), "after": without_made_up(after)}
        await server.remove(case["object"])

    if RECORD:
        compare_or_record("updated.json", told)


async def test_services_live_as_on_the_real_server(server: Server) -> None:
    told: dict[str, list[Any]] = {}

    for case in load_all((TABLES / "services.yaml").read_text()):
        obj: Tree = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": case["steps"][0]}
        path, changes = path_of(obj, named=True), [{"spec": step} for step in case["steps"][1:]]
        answers = [await server.ask("POST", path_of(obj), obj)]
        answers += [await server.ask("PATCH", path, change, kind=MERGE) for change in changes]
        await server.remove(obj)
        asked = json.dumps(case["steps"])
        told[case["name"]] = [
            masked(answer["spec"], asked) if status < 300 else answer["message"] for status, answer in answers
        ]

    compare_or_record("services.json", told)


def masked(spec: Tree, asked: str) -> Tree:
    """The spec with numbers instead of what the server chose."""
    told: Tree = deepcopy(spec)
    chosen: dict[Any, str] = {}
    for holder in (told, *told.get("ports", [])):
        for name, value in holder.items():
            values = value if isinstance(value, list) else [value]
            if name in ("clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"):
                shown = [v if str(v) in asked else chosen.setdefault(v, f"chosen {len(chosen)}") for v in values]
                holder[name] = shown if isinstance(value, list) else shown[0]
    return told


async def test_writers_are_warned_as_the_real_server_warns_them(server: Server) -> None:
    told: dict[str, list[str]] = {}

    for obj in load_all((TABLES / "warned.yaml").read_text()):
        status, answer, warnings = await server.ask_with_warnings("POST", path_of(obj), obj)
        assert status == 201, f"{obj['kind']} {answer['message']}"
        told[f"{obj['apiVersion']} {obj['kind']} {obj['metadata']['name']}"] = warnings

    compare_or_record("warned.json", told)


async def test_versions_are_converted_as_on_the_real_server(server: Server) -> None:
    autoscaler, event = load_all((TABLES / "converted.yaml").read_text())
    told: dict[str, Tree] = {}

    for obj, other in ((autoscaler, "autoscaling/v1"), (event, "events.k8s.io/v1")):
        await server.create({**obj, "status": {}})
        if obj["kind"] == "HorizontalPodAutoscaler":
            await server.change(obj, "status", {"status": obj["status"]})
        for api_version in (obj["apiVersion"], other):
            answer = (await server.ask("GET", path_of({**obj, "apiVersion": api_version}, named=True)))[1]
            told[f"{api_version} {obj['kind']}"] = without_made_up(answer)
        await server.remove(obj)

    compare_or_record("converted.json", told)


@pytest.mark.parametrize("expressions", [[], [{"key": "c", "operator": "In", "values": ["e", "d"]}]])
async def test_scale_is_as_on_the_real_server(server: Server, expressions: list[Tree]) -> None:
    template = {"metadata": {"labels": {"a": "b", "c": "d"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": expressions}
    spec = {"replicas": 0, "selector": selector, "template": template}
    obj = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "scaled"}, "spec": spec}

    await server.create(obj)
    while True:
        live = (await server.ask("GET", path_of(obj, named=True)))[1]
        scale = (await server.ask("GET", path_of(obj, named=True) + "/scale"))[1]
        if scale["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]:
            break
    await server.remove(obj)

    assert scale == scale_of(GroupVersionKind("apps", "v1", "ReplicaSet"), live)


async def test_unknown_fields_are_refused_as_on_the_real_server(server: Server) -> None:
    asked = ("spec.nope", "metadata.namespace", "status.replicas")

    for gvk, (plural, namespaced) in served().items():
        if gvk.version not in ("v1", "v2") or gvk.group in ("apiextensions.k8s.io", "apiregistration.k8s.io"):
            continue
        root = f"/apis/{gvk.api_version}" if gvk.group else "/api/v1"
        path = f"{root}{f'/namespaces/{NAMESPACE}' if namespaced else ''}/{plural}"
        for name in asked:
            status, answer = await server.ask("GET", path, query=(("fieldSelector", f"{name}=x"), ("limit", "1")))
            if status not in (404, 405):
                assert unsupported_fields(gvk, [name]) == (answer["message"] if status == 400 else ""), gvk


def compare_or_record(name: str, told: Mapping[str, Any]) -> None:
    path = TABLES / name
    if RECORD:
        path.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
    assert json.loads(path.read_text()) == told
