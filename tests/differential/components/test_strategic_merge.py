"""Strategic merge patches against the real server: the same objects, the same refusals.

The server is asked twice: to apply the patch, and to take the object as we patched it. Both answers went through its
defaulting and validation, so whatever differs is our merge. Everything is a dry run.

Covers: kubewright.apiserver.verbs.patches
"""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from tests.unit.apiserver.verbs.patches.test_strategic_merge import LIVE, REFUSALS

from kubewright import Client, Config, connect
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.verbs.patches.strategic_merge.patch import apply_strategic_patch
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.client.transport.transport import HttpRequest
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import Namespace

pytestmark = [pytest.mark.real, pytest.mark.slow]

STEPS = 300
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
REVISION = GroupVersionKind("apps", "v1", "ControllerRevision")
SERVICE = GroupVersionKind("", "v1", "Service")
MERGE_KEYS = {"containers": "name", "env": "name", "volumes": "name", "volumeMounts": "mountPath"}


class Server:
    """Plain requests to the real server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(
        self, method: str, path: str, tree: Any = None, *, kind: str = "application/json", dry_run: bool = True
    ) -> tuple[int, dict[str, Any]]:
        request = HttpRequest(
            method=method,
            path=path,
            query=(("dryRun", "All"),) if dry_run and method != "GET" else (),
            headers=(("Accept", "application/json"), ("Content-Type", kind)),
            body=None if tree is None else json.dumps(tree).encode(),
            timeout=20,
        )
        answer = await self._client.transport.send(request)
        decoded: dict[str, Any] = json.loads(answer.body)
        return answer.status, decoded

    async def patch(self, path: str, patch: Any) -> tuple[int, dict[str, Any]]:
        return await self.ask("PATCH", path, patch, kind="application/strategic-merge-patch+json")


@pytest.fixture(scope="module")
async def server(real_cluster: RealCluster) -> AsyncIterator[Server]:
    async with connect(Config.load(kubeconfig=real_cluster.kubeconfig)) as client:
        yield Server(client)


@pytest.fixture
async def namespace(real_cluster: RealCluster) -> str:
    name = f"case-{uuid4().hex[:10]}"
    await real_cluster.client.create(Namespace.named(name))
    return name


def container(chance: random.Random, name: str) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "image": chance.choice("ijk")}
    if chance.random() < 0.5:
        made["env"] = [{"name": one, "value": chance.choice("xyz")} for one in some(chance, "ABCD")]
    if chance.random() < 0.5:
        made["args"] = some(chance, "xyz")
    if chance.random() < 0.3:
        made["volumeMounts"] = [{"mountPath": f"/{one}", "name": "v"} for one in some(chance, "mno")]
    return made


def some(chance: random.Random, pool: str, at_least: int = 0) -> list[str]:
    return chance.sample(list(pool), chance.randint(at_least, len(pool)))


def deployment(chance: random.Random) -> dict[str, Any]:
    strategy: dict[str, Any] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": chance.randint(1, 3)}}
    return {
        "metadata": {"labels": dict.fromkeys(some(chance, "abc"), "1")},
        "spec": {
            "replicas": chance.randint(0, 3),
            "strategy": chance.choice([strategy, {"type": "Recreate"}]),
            "template": {
                "metadata": {"labels": {"app": "web", **dict.fromkeys(some(chance, "abc"), "1")}},
                "spec": {
                    "containers": [container(chance, one) for one in some(chance, "cdef", 1)],
                    "volumes": [{"name": "v", "emptyDir": {}}, *({"name": one} for one in some(chance, "wx"))],
                },
            },
        },
    }


def service(chance: random.Random) -> dict[str, Any]:
    ports = [{"name": f"p{one}", "port": int(one), "targetPort": int(one)} for one in some(chance, "123", 1)]
    return {"metadata": {"labels": dict.fromkeys(some(chance, "abc"), "1")}, "spec": {"ports": ports}}


def part(chance: random.Random, wanted: dict[str, Any]) -> dict[str, Any]:
    """A patch with some of what is wanted, some nulls and some directives."""
    patch: dict[str, Any] = {}
    for name, value in wanted.items():
        fate = chance.random()
        if fate < 0.2:
            continue
        if fate < 0.27 and name not in ("containers", "metadata", "spec", "template"):
            patch[name] = None
        elif isinstance(value, dict):
            patch[name] = part(chance, value)
        elif name in MERGE_KEYS:
            key = MERGE_KEYS[name]
            patch[name] = [element(chance, item, key) for item in value]
            if chance.random() < 0.4:
                kept = [item for item in patch[name] if item.get("$patch") != "delete"]
                patch[f"$setElementOrder/{name}"] = [{key: item[key]} for item in kept]
        else:
            patch[name] = value
    if "type" in patch and chance.random() < 0.5:
        patch["$retainKeys"] = [name for name, value in patch.items() if value is not None]
    return patch


def element(chance: random.Random, item: dict[str, Any], key: str) -> dict[str, Any]:
    if chance.random() < 0.15:
        return {key: item[key], "$patch": "delete"}
    return {**part(chance, item), key: item[key]}


def compared(answer: dict[str, Any]) -> dict[str, Any]:
    """What a merge decides; who wrote a field is recorded differently for a patch and for an update."""
    shown = {name: value for name, value in answer["metadata"].items() if name not in ("managedFields", "generation")}
    return {**answer, "metadata": shown}


def verdict(live: Any, patch: Any, gvk: GroupVersionKind) -> tuple[int, Any]:
    """Our own answer: 200 with the object, or a code with its sentence."""
    try:
        return 200, apply_strategic_patch(live, patch, gvk=gvk)
    except StatusError as refusal:
        return refusal.code, refusal.status["message"]


async def check(server: Server, path: str, patch: Any, gvk: GroupVersionKind) -> int:
    """Compare one patch; the code of the server's answer to it."""
    for _ in range(20):
        _, live = await server.ask("GET", path)
        code, answer = await server.patch(path, patch)
        merged, ours = verdict(live, patch, gvk)
        if merged != 200:
            assert (code, answer["message"]) == (merged, ours), patch
            return code
        put_code, put_answer = await server.ask("PUT", path, ours)
        if put_code != 409:
            break
        # A controller wrote between the two, so they were about different objects.
    assert put_code == code, (patch, answer, put_answer)
    if code == 200:
        assert compared(put_answer) == compared(answer), patch
    else:
        assert put_answer["message"] == answer["message"], patch
    return code


@pytest.mark.timeout(120)
async def test_random_patches_of_a_deployment_give_the_same_object(server: Server, namespace: str) -> None:
    chance = random.Random(4)
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    codes = []
    for number in range(STEPS):
        if number % 15 == 0:
            body = deployment(chance)
            body["metadata"]["name"] = name = f"web-{number}"
            body["spec"]["selector"] = {"matchLabels": {"app": "web"}}
            body["spec"]["paused"] = True  # the controllers have nothing to do with it
            body["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
            code, answer = await server.ask("POST", path, body, dry_run=False)
            assert code == 201, answer
        codes.append(await check(server, f"{path}/{name}", part(chance, deployment(chance)), DEPLOYMENT))

    assert codes.count(200) > STEPS // 3


async def test_random_patches_of_a_service_give_the_same_object(server: Server, namespace: str) -> None:
    chance = random.Random(5)
    path = f"/api/v1/namespaces/{namespace}/services"
    body = {**service(chance), "apiVersion": "v1", "kind": "Service"}
    body["metadata"]["name"] = "web"
    code, answer = await server.ask("POST", path, body, dry_run=False)
    assert code == 201, answer

    codes = [await check(server, f"{path}/web", part(chance, service(chance)), SERVICE) for _ in range(40)]

    assert codes.count(200) > 10


@pytest.mark.parametrize("patch", [patch for patch, _, _ in REFUSALS])
async def test_refusals_have_the_same_words(server: Server, namespace: str, patch: Any) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    body = deployment(random.Random(6))
    body["metadata"]["name"] = "web"
    body["spec"].update(selector={"matchLabels": {"app": "web"}}, paused=True)
    body["spec"]["template"]["spec"] = {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]}
    body["metadata"]["finalizers"] = LIVE["metadata"]["finalizers"]
    code, answer = await server.ask("POST", path, body, dry_run=False)
    assert code == 201, answer

    assert await check(server, f"{path}/web", patch, DEPLOYMENT) in (400, 500)


async def test_free_form_json_has_no_fields_to_merge_into(server: Server, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/controllerrevisions"
    body = {"metadata": {"name": "one"}, "revision": 1, "data": {"a": {"b": 1}, "c": 1}}
    code, answer = await server.ask("POST", path, body, dry_run=False)
    assert code == 201, answer

    assert await check(server, f"{path}/one", {"data": {"a": {"b": 2}}}, REVISION) == 500
