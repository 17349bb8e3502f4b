"""Managed fields in the corners of the API, compared with the real server: refusals, kubectl, many managers, scale.

Covers: kubewright.apiserver.managedfields
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final
from uuid import uuid4

import msgspec
import pytest

from kubewright import Client, Config, connect
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.managedfields.conflicts import ApplyConflict, conflict_error
from kubewright.apiserver.managedfields.field_manager import apply, only_times_differ, record_update
from kubewright.apiserver.managedfields.reset_fields import reset_fields_of_kind
from kubewright.apiserver.managedfields.scale_handler import SCALE_API_VERSION, to_parent, to_subresource
from kubewright.apiserver.managedfields.types import FieldType, type_of_kind
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.client.transport.transport import HttpRequest
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import Namespace

pytestmark = pytest.mark.real

Tree = dict[str, Any]
CONFIG_MAP: Final = GroupVersionKind("", "v1", "ConfigMap")
REPLICA_CONTROLLER: Final = GroupVersionKind("", "v1", "ReplicationController")
POD_TEMPLATE: Final = GroupVersionKind("", "v1", "PodTemplate")
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def known(gvk: GroupVersionKind) -> FieldType:
    kind = type_of_kind(gvk)
    assert kind is not None
    return kind


class Server:
    """The real server, a namespace in it, and one object at a time."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.base = f"/api/v1/namespaces/{namespace}"
        self.namespace = namespace

    async def send(self, method: str, path: str, body: Tree | None = None, **query: str) -> tuple[int, Tree]:
        content = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
        request = HttpRequest(
            method=method,
            path=f"{self.base}/{path}",
            query=tuple(query.items()),
            headers=(("Accept", "application/json"), ("Content-Type", content)),
            body=None if body is None else msgspec.json.encode(body),
            timeout=30,
        )
        response = await self.client.transport.send(request)
        return response.status, msgspec.json.decode(response.body)

    def tree(self, gvk: GroupVersionKind, name: str, **members: Any) -> Tree:
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, **members}


@pytest.fixture(scope="module")
async def server(real_cluster: RealCluster) -> AsyncIterator[Server]:
    async with connect(Config.load(kubeconfig=real_cluster.kubeconfig)) as client:
        name = f"owners-{uuid4().hex[:10]}"
        await client.create(Namespace.named(name))
        yield Server(client, name)
        await client.delete(Namespace, name)


def said(tree: Tree) -> bytes:
    return msgspec.json.encode(tree["metadata"].get("managedFields", []))


def newest(tree: Tree) -> str:
    return max(str(entry.get("time", "")) for entry in tree["metadata"]["managedFields"])


def copied(tree: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(tree))


def foretold(live: Tree | None, intent: Tree, gvk: GroupVersionKind, manager: str, time: str, force: bool) -> Any:
    try:
        return apply(
            live,
            intent,
            manager=manager,
            force=force,
            api_version=gvk.api_version,
            time=time,
            type=known(gvk),
            reset=reset_fields_of_kind(gvk),
        )
    except ApplyConflict as conflict:
        return conflict_error(conflict)
    except StatusError as refused:
        return refused


MISFITS: Final[Mapping[str, Tree]] = {
    "an unknown field": {"foo": 1},
    "a text for a number": {"terminationGracePeriodSeconds": "x"},
    "a truth for a number": {"terminationGracePeriodSeconds": True},
    "a number for a truth": {"hostNetwork": 1},
    "a number for a text": {"nodeSelector": {"a": 1}},
    "a list for a map": {"nodeSelector": [1, "a", {"b": None}]},
    "a map for a list": {"containers": {"a": [1.5, 2.0]}},
    "a map for any scalar": {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": {"a": 1}}}]},
    "a map in a list of texts": {"containers": [{"name": "a", "args": [{"x": [None, "y"]}, True]}]},
    "a key twice": {"containers": [{"name": "a"}, {"name": "a"}]},
    "a key twice by its default": {
        "containers": [{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]}]
    },
    "an empty key twice": {"containers": [{"image": "x"}, {"image": "y"}]},
    "a null item": {"containers": [None]},
    "a scalar item": {"containers": ["x"]},
    "two things": {"hostNetwork": "yes", "terminationGracePeriodSeconds": "x"},
}


@pytest.mark.parametrize("name", MISFITS)
async def test_an_intent_of_the_wrong_type_is_refused_in_the_same_words(server: Server, name: str) -> None:
    intent = server.tree(POD_TEMPLATE, "misfit", template={"spec": MISFITS[name]})
    _, answer = await server.send("PATCH", "podtemplates/misfit", intent, fieldManager="ann", dryRun="All")
    refused = foretold(None, intent, POD_TEMPLATE, "ann", "", force=False)
    assert answer.get("code") == 500
    # The real server names several misfits in any order.
    assert sorted(refused.status.pop("message").splitlines()) == sorted(answer.pop("message").splitlines())
    assert refused.status == answer


SETS: Final[Mapping[str, list[Any]]] = {
    "a value twice": ["x.io/a", "x.io/a"],
    "null": [None],
    "a map": [{"a": 1}],
    "a list": [["a"]],
}


@pytest.mark.parametrize("name", SETS)
async def test_a_set_with_something_wrong_in_it_is_refused_in_the_same_words(server: Server, name: str) -> None:
    intent = server.tree(POD_TEMPLATE, "misfit", template={"metadata": {"finalizers": SETS[name]}})
    _, answer = await server.send("PATCH", "podtemplates/misfit", intent, fieldManager="ann", dryRun="All")
    assert foretold(None, intent, POD_TEMPLATE, "ann", "", force=False).status == answer


async def test_too_many_managers_become_ancient_changes(server: Server) -> None:
    live: Tree | None = None
    managers: list[list[str]] = []
    data: dict[str, str] = {}
    for number in range(16):
        manager = f"m{number * 7 % 13}-{number}" if number % 3 else "again"
        data = {**data, f"k{number}": "x"}
        body = server.tree(CONFIG_MAP, "many", data=data)
        method, path = ("PUT", "configmaps/many") if live else ("POST", "configmaps")
        _, answer = await server.send(method, path, body, fieldManager=manager)
        new = copied(answer)
        del new["metadata"]["managedFields"]
        record_update(
            live,
            new,
            manager=manager,
            api_version="v1",
            time=newest(answer),
            type=known(CONFIG_MAP),
            reset=reset_fields_of_kind(CONFIG_MAP),
        )
        assert said(new) == said(answer)
        live = answer
        managers.append([entry["manager"] for entry in answer["metadata"]["managedFields"]])
    assert len(managers[-1]) == 10
    assert any("ancient-changes" in then for then in managers)


@pytest.mark.parametrize("changed", [False, True], ids=["as applied", "changed since"])
async def test_kubectl_moves_from_client_side_apply_without_conflicts(server: Server, changed: bool) -> None:
    name = f"kubectl-{str(changed).lower()}"
    applied = server.tree(CONFIG_MAP, name, data={"a": "1", "b": "2"})
    body = copied(applied)
    body["metadata"]["annotations"] = {LAST_APPLIED: msgspec.json.encode(applied).decode()}
    if changed:
        body["data"]["a"] = "changed"
    _, live = await server.send("POST", "configmaps", body, fieldManager="kubectl-client-side-apply")
    intent = server.tree(CONFIG_MAP, name, data={"a": "<9>", "b": "3"})
    code, answer = await server.send("PATCH", f"configmaps/{name}", intent, fieldManager="kubectl")
    if changed:
        assert foretold(live, intent, CONFIG_MAP, "kubectl", "", force=False).status == answer
        return
    assert code == 200
    mine = foretold(live, intent, CONFIG_MAP, "kubectl", newest(answer), force=False)
    mine["metadata"]["resourceVersion"] = answer["metadata"]["resourceVersion"]
    assert mine == answer


async def test_an_apply_that_changes_only_times_is_not_written(server: Server) -> None:
    pods = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": None}
    intent = server.tree(POD_TEMPLATE, "idle", template={"spec": pods})
    await server.send("PATCH", "podtemplates/idle", intent, fieldManager="ann")
    _, live = await server.send("PATCH", "podtemplates/idle", intent, fieldManager="ann")
    _, again = await server.send("PATCH", "podtemplates/idle", intent, fieldManager="ann")
    mine = foretold(live, intent, POD_TEMPLATE, "ann", "2099-01-01T00:00:00Z", force=False)
    assert mine["template"]["spec"]["terminationGracePeriodSeconds"] is None
    mine["template"]["spec"]["terminationGracePeriodSeconds"] = 30  # the default of the kind
    assert "2099" in said(mine).decode()
    assert only_times_differ(live, mine)
    assert again == live


async def test_who_scales_owns_the_replicas(server: Server) -> None:
    pods = {"metadata": {"labels": {"s": "t"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = server.tree(REPLICA_CONTROLLER, "scaled", spec={"replicas": 1, "selector": {"s": "t"}, "template": pods})
    await server.send("POST", "replicationcontrollers", body, fieldManager="creator")
    path = "replicationcontrollers/scaled"
    for manager, operation, replicas in (
        ("scaler", "PUT", 2),
        ("scaler", "PUT", 3),
        ("ann", "PATCH", 2),
        ("bob", "PATCH", 2),
        ("creator", "PUT", 1),
    ):
        _, live = await server.send("GET", path)
        _, old = await server.send("GET", f"{path}/scale")
        scale = server.tree(GroupVersionKind("autoscaling", "v1", "Scale"), "scaled", spec={"replicas": replicas})
        query = {"force": "true"} if operation == "PATCH" else {}
        code, _ = await server.send(operation, f"{path}/scale", scale, fieldManager=manager, **query)
        assert code == 200
        _, after = await server.send("GET", path)
        time = max(str(entry.get("time", "")) for entry in of_main(after))  # the controller's may be later
        assert of_main(after) == of_main(scaled(live, old, scale, manager, time, operation))


def scaled(live: Tree, old: Tree, scale: Tree, manager: str, time: str, operation: str) -> Tree:
    """The object, with its managed fields as they are after its scale was written."""
    kind = known(GroupVersionKind("autoscaling", "v1", "Scale"))
    paths = {"v1": ("spec", "replicas")}
    entries = live["metadata"]["managedFields"]
    before = copied(old)
    before["metadata"]["managedFields"] = to_subresource(entries, paths)
    options: Any = {
        "manager": manager,
        "api_version": SCALE_API_VERSION,
        "subresource": "scale",
        "time": time,
        "type": kind,
        "reset": {},
    }
    if operation == "PUT":
        new = {**copied(old), "spec": scale["spec"]}
        record_update(before, new, **options)
    else:
        new = apply(before, scale, force=True, **options)
    after = copied(live)
    after["metadata"]["managedFields"] = to_parent(
        entries, new["metadata"].get("managedFields", []), api_version="v1", paths=paths
    )
    return dict(after)


def of_main(tree: Tree) -> list[Any]:
    """The managed fields but those of the controller, which writes when it will."""
    return [entry for entry in tree["metadata"]["managedFields"] if entry.get("subresource") != "status"]
