"""Server-side apply and managed fields, compared with the real server: the same objects, owners and conflicts.

Random writers apply, update and patch one object. Each step is foretold from what the server answered last, and
then asked of it: the merged object, every entry of managedFields with its time and place, or the refusal must be
the same. KUBEWRIGHT_APPLY_STEPS makes the walk longer.

Covers: kubewright.apiserver.managedfields
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal
from uuid import uuid4

import msgspec
import pytest

from kubewright import Client, Config, connect
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.managedfields.conflicts import ApplyConflict, conflict_error
from kubewright.apiserver.managedfields.field_manager import apply, record_update
from kubewright.apiserver.managedfields.reset_fields import (
    ResetFields,
    reset_fields_of_custom_kind,
    reset_fields_of_kind,
)
from kubewright.apiserver.managedfields.types import FieldType, type_of_kind, type_of_schema
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.client.transport.transport import HttpRequest
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import Namespace

pytestmark = pytest.mark.real

Tree = dict[str, Any]
STEPS = int(os.environ.get("KUBEWRIGHT_APPLY_STEPS", "25"))
SEED = int(os.environ.get("KUBEWRIGHT_APPLY_SEED", "7"))

ALLOCATED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")

TEXT: Tree = {"type": "string"}
NUMBER: Tree = {"type": "integer"}
DEEP: Tree = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": TEXT, "c": TEXT}}}}
ITEMS: Tree = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {
        "type": "object",
        "required": ["port"],
        "properties": {
            "port": NUMBER,
            "protocol": {"type": "string", "default": "TCP"},
            "note": TEXT,
            "extra": {"type": "object", "additionalProperties": TEXT},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
        },
    },
}
SCHEMA: Tree = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": NUMBER,
                "name": {"type": "string", "nullable": True},
                "granular": {"type": "object", "additionalProperties": TEXT},
                "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": TEXT},
                "structs": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "properties": {"x": NUMBER, "y": TEXT}},
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
                "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": NUMBER},
                "plain": {"type": "array", "items": NUMBER},
                "ports": ITEMS,
                "named": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": TEXT, "value": NUMBER, "ports": ITEMS},
                    },
                },
                "either": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "any": {"x-kubernetes-preserve-unknown-fields": True, "nullable": True},
                "deep": DEEP,
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


class Rng(random.Random):
    """Dice for trees."""

    def some(self, makers: dict[str, Callable[[], Any]], share: float = 0.4) -> Tree:
        """Some of the members, each made when it is taken."""
        return {name: make() for name, make in makers.items() if self.random() < share}

    def text(self) -> str:
        return self.choice(["a", "b", "c", "x<y&z", "ü"])

    def names(self, most: int = 3) -> Tree:
        return {self.choice("pqrs"): self.text() for _ in range(self.randint(0, most))}

    def tags(self) -> list[str]:
        return self.sample(["t1", "t2", "t3", "t4", "t5"], self.randint(0, 4))

    def ports(self) -> list[Tree]:
        keys = self.sample([(80, None), (80, "UDP"), (443, "TCP"), (9, None)], self.randint(0, 3))
        return [
            {
                "port": port,
                **({"protocol": protocol} if protocol else {}),
                **self.some({"note": self.text, "extra": self.names, "tags": self.tags}),
            }
            for port, protocol in keys
        ]

    def anything(self, depth: int = 2) -> Any:
        if depth and self.random() < 0.5:
            return {self.choice("pqrs"): self.anything(depth - 1) for _ in range(self.randint(0, 2))}
        return self.choice([1, 2, "one", True, [1, "a"], [], 1.5])

    def named(self) -> list[Tree]:
        return [
            {"name": name, **self.some({"value": lambda: self.randint(1, 2), "ports": self.ports})}
            for name in self.sample(["n1", "n2", "n3", "n4"], self.randint(0, 4))
        ]

    def spec(self) -> Tree:
        return self.some(
            {
                "size": lambda: self.randint(1, 2),
                "name": lambda: self.choice(["a", "b", None]),
                "granular": self.names,
                "atomic": self.names,
                "structs": lambda: {
                    self.choice("pqr"): self.some({"x": lambda: self.randint(1, 2), "y": self.text})
                    for _ in range(self.randint(0, 3))
                },
                "tags": self.tags,
                "numbers": lambda: self.sample([1, 2, 10, 30], self.randint(0, 3)),
                "plain": lambda: [self.randint(1, 2) for _ in range(self.randint(0, 2))],
                "ports": self.ports,
                "named": self.named,
                "either": lambda: self.choice([1, "1", "2"]),
                "free": lambda: {self.choice("pqr"): self.anything() for _ in range(self.randint(0, 2))},
                "any": lambda: self.choice([None, self.anything(), self.anything()]),
                "deep": lambda: self.choice([{}, {"a": {}}, {"a": {"b": self.text()}}, {"a": {"c": self.text()}}]),
            }
        )

    def metadata(self) -> Tree:
        return self.some(
            {
                "labels": self.label_map,
                "annotations": self.names,
                "finalizers": lambda: self.sample(["x.io/a", "x.io/b"], self.randint(0, 2)),
            },
            0.3,
        )

    def container(self, name: str) -> Tree:
        return {
            "name": name,
            **self.some({"image": lambda: self.choice(["i1", "i2"])}, 0.9),
            **self.some(
                {
                    "env": lambda: [
                        {"name": name, "value": self.text()} for name in self.sample("ABC", self.randint(0, 3))
                    ],
                    "ports": lambda: [
                        {"containerPort": port, **self.some({"protocol": lambda: "TCP", "name": lambda: "web"}, 0.4)}
                        for port in self.sample([80, 443], self.randint(0, 1))
                    ],
                    "args": lambda: self.choice([[], ["a"], ["b", "c"]]),
                    "resources": lambda: self.choice([{}, {"requests": {"cpu": "1"}}, {"limits": {"memory": "1Gi"}}]),
                    "readinessProbe": lambda: {"httpGet": {"port": self.choice([80, "web"]), "path": "/"}},
                    "securityContext": lambda: self.choice([{}, {"privileged": True}]),
                }
            ),
        }

    def pods(self) -> Tree:
        return {
            "metadata": {"labels": {"app": "x", **self.label_map()}},
            "spec": {
                "containers": [
                    self.container(name) for name in self.sample(["web", "side", "log"], self.randint(1, 2))
                ],
                **self.some(
                    {
                        "nodeSelector": self.label_map,
                        "volumes": lambda: [
                            {"name": name, **self.choice([{"emptyDir": {}}, {"configMap": {"name": "c"}}])}
                            for name in self.sample(["v1", "v2"], self.randint(0, 2))
                        ],
                        "tolerations": lambda: [{"key": self.choice("ab"), "operator": "Exists"}],
                        "terminationGracePeriodSeconds": lambda: self.choice([10, 30]),
                        "securityContext": lambda: self.choice([{}, {"runAsUser": 1}]),
                    }
                ),
            },
        }

    def label_map(self) -> Tree:
        return {self.choice("pq"): self.choice("ab") for _ in range(self.randint(0, 2))}


def custom(rng: Rng) -> Tree:
    return rng.some({"spec": rng.spec, "status": lambda: {"n": rng.randint(1, 2)}}, 0.85)


def config_map(rng: Rng) -> Tree:
    return rng.some(
        {
            "data": rng.names,
            "binaryData": lambda: {rng.choice("tuv"): rng.choice(["YQ==", "Yg=="])},
            "immutable": lambda: False,
        },
        0.7,
    )


def service(rng: Rng) -> Tree:
    def ports() -> list[Tree]:
        return [
            {
                "port": port,
                "name": f"p{port}",
                **rng.some({"protocol": lambda: "TCP", "targetPort": lambda: rng.choice([80, "web"])}),
            }
            for port in rng.sample([80, 443, 53], rng.randint(1, 2))
        ]

    return {
        "spec": {
            "ports": ports(),
            **rng.some(
                {
                    "selector": rng.label_map,
                    "type": lambda: "ClusterIP",
                    "sessionAffinity": lambda: rng.choice(["None", "ClientIP"]),
                    "externalIPs": lambda: rng.sample(["10.1.1.1", "10.1.1.2"], rng.randint(0, 2)),
                }
            ),
        }
    }


def deployment(rng: Rng) -> Tree:
    return {
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": rng.pods(),
            **rng.some(
                {
                    "replicas": lambda: rng.randint(0, 1),
                    "paused": lambda: True,
                    "strategy": lambda: rng.choice(
                        [{}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": rng.choice([1, "50%"])}}]
                    ),
                }
            ),
        }
    }


class ReferenceServer:
    """The real API server, and one object at a time on it."""

    def __init__(self, client: Client, path: str, kinds: dict[GroupVersionKind, FieldType], namespace: str) -> None:
        self.client = client
        self.path_template = path
        self.kinds = kinds
        self.namespace = namespace
        self.start()

    def start(self) -> None:
        """Begin with a new object."""
        self.name = f"o-{uuid4().hex[:8]}"
        self.live: Tree | None = None
        self.use_version(next(iter(self.kinds)))

    def use_version(self, gvk: GroupVersionKind) -> None:
        """Send the next requests in this version; nothing but its name changes between versions."""
        self.gvk = gvk
        self.kind = self.kinds[gvk]
        self.collection = self.path_template.format(version=gvk.version, namespace=self.namespace)
        self.path = f"{self.collection}/{self.name}"
        if self.live is not None:
            self.live = {**self.live, "apiVersion": gvk.api_version}

    def convert(self, tree: Tree, version: str) -> tuple[Tree, FieldType]:
        for gvk, kind in self.kinds.items():
            if gvk.api_version == version:
                return {**tree, "apiVersion": version}, kind
        raise LookupError(version)

    def reset(self, subresource: str) -> ResetFields:
        if self.kind.built_in:
            return reset_fields_of_kind(self.gvk, subresource)
        return reset_fields_of_custom_kind(subresource, has_status=True)

    async def send(self, method: str, path: str, body: Tree | None, query: Tree, content: str) -> tuple[int, Tree]:
        request = HttpRequest(
            method=method,
            path=path,
            query=tuple(query.items()),
            headers=(("Accept", "application/json"), ("Content-Type", content)),
            body=None if body is None else msgspec.json.encode(body),
            timeout=30,
        )
        response = await self.client.transport.send(request)
        return response.status, msgspec.json.decode(response.body)

    async def refresh(self) -> None:
        code, answer = await self.send("GET", self.path, None, {}, "application/json")
        self.live = answer if code == 200 else None

    def whole(self, body: Tree, metadata: Tree) -> Tree:
        meta = {**metadata, "name": self.name, "namespace": self.namespace}
        if self.live is not None:
            meta["resourceVersion"] = self.live["metadata"]["resourceVersion"]
        return {"apiVersion": self.gvk.api_version, "kind": self.gvk.kind, "metadata": meta, **body}

    async def apply(self, intent: Tree, manager: str, *, force: bool, subresource: str = "") -> None:
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        path = f"{self.path}/{subresource}" if subresource else self.path

        def foretell(time: str) -> Any:
            try:
                return apply(
                    self.live,
                    intent,
                    manager=manager,
                    force=force,
                    api_version=self.gvk.api_version,
                    subresource=subresource,
                    time=time,
                    type=self.kind,
                    reset=self.reset(subresource),
                    convert=self.convert,
                )
            except ApplyConflict as conflict:
                return conflict_error(conflict)
            except StatusError as refused:
                return refused

        foretold = foretell("")
        refused = isinstance(foretold, StatusError)
        stored_code, stored = (0, {}) if refused else await self.stored(foretold, subresource)
        code, answer = await self.send("PATCH", path, intent, query, "application/apply-patch+yaml")
        if code == 409 and "has been modified" in answer["message"]:
            await self.refresh()  # a controller came in between
            return
        if refused:
            assert sorted_causes(foretold.status) == sorted_causes(answer)
            return
        if code == 422:
            # Not for a reason that is ours: the foretold object is refused just so. Only what an apply leaves null is
            # not pruned as what a client sends, and refused.
            same = (stored_code, stored.get("message")) == (422, answer["message"])
            refused_nulls = re.findall(r'(\w[\w.\[\]]+): Invalid value: "null"', answer["message"])
            assert same or (refused_nulls and set(refused_nulls) <= set(nulls(foretold))), answer
            return
        assert code < 300, answer
        foretold = foretell(time_of(answer))
        assert in_text(answer, self.gvk) == in_text(foretold, self.gvk)
        assert bare(answer) == bare(stored)
        self.live = answer

    async def stored(self, foretold: Tree, subresource: str) -> tuple[int, Tree]:
        """What the server says to the foretold object: with its defaults, or why it refuses it."""
        tree = msgspec.json.decode(msgspec.json.encode(foretold))
        tree["metadata"].pop("managedFields", None)
        under = f"{self.path}/{subresource}" if subresource else self.path
        method, path = ("PUT", under) if self.live is not None else ("POST", self.collection)
        return await self.send(method, path, tree, {"dryRun": "All"}, "application/json")

    async def update(self, new: Tree, manager: str, subresource: str = "") -> None:
        under = f"{self.path}/{subresource}" if subresource else self.path
        method, path = ("PUT", under) if self.live is not None else ("POST", self.collection)
        code, answer = await self.send(method, path, new, {"fieldManager": manager}, "application/json")
        if code >= 300:
            assert code in (409, 422), answer
            await self.refresh()
            return
        # A status endpoint forgets all else, but not who wrote it.
        new["metadata"] = {name: value for name, value in new["metadata"].items() if value or name == "managedFields"}
        foretold = msgspec.json.decode(msgspec.json.encode(new if subresource else answer))
        foretold["metadata"]["managedFields"] = new["metadata"].get("managedFields")
        # What is put back was there when it was written down.
        foretold.pop("status", None)
        foretold.update({"status": new["status"]} if "status" in new else {})
        for allocated in ALLOCATED:
            # Found for the object after its fields have been recorded.
            if allocated in foretold.get("spec", {}) and allocated not in new.get("spec", {}):
                del foretold["spec"][allocated]
        record_update(
            self.live,
            foretold,
            manager=manager,
            api_version=self.gvk.api_version,
            subresource=subresource,
            time=time_of(answer),
            type=self.kind,
            reset=self.reset(subresource),
            convert=self.convert,
        )
        assert in_text(answer, self.gvk) == in_text(foretold, self.gvk)
        self.live = answer


def in_text(answer: Tree, kind: GroupVersionKind) -> list[str]:
    """The managed fields as text, since the order of names counts; but for custom kinds, whose names are sorted."""
    order: Literal["sorted"] | None = "sorted" if "example.io" in kind.group else None
    entries = answer["metadata"].get("managedFields", ())
    return [msgspec.json.encode(entry, order=order).decode() for entry in entries]


def nulls(tree: Any, path: str = "") -> Iterator[str]:
    """Where a tree is null."""
    if tree is None:
        yield path
    elif isinstance(tree, dict):
        for name, value in tree.items():
            yield from nulls(value, f"{path}.{name}" if path else name)
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from nulls(value, f"{path}[{index}]")


def time_of(answer: Tree) -> str:
    """When the write was made, if it moved any time at all."""
    return max((entry.get("time", "") for entry in answer["metadata"].get("managedFields", ())), default="")


def sorted_causes(status: Any) -> Tree:
    tree: Tree = dict(status)
    if "causes" in tree.get("details", {}):
        causes = sorted(tree["details"]["causes"], key=lambda cause: (cause["message"], cause["field"]))
        tree["details"] = {**tree["details"], "causes": causes}
    return tree


def bare(tree: Tree) -> Tree:
    """An object without what every write changes."""
    dropped = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")
    metadata = {name: value for name, value in tree["metadata"].items() if name not in dropped}
    rest = {name: value for name, value in tree.items() if name != "status"}
    if "clusterIP" in rest.get("spec", {}):
        rest["spec"] = {name: value for name, value in rest["spec"].items() if not name.startswith("clusterIP")}
    return {**rest, "metadata": metadata}


@pytest.fixture(scope="module")
async def client(real_cluster: RealCluster) -> AsyncIterator[Client]:
    async with connect(Config.load(kubeconfig=real_cluster.kubeconfig)) as client:
        yield client


@pytest.fixture(scope="module")
async def namespace(client: Client) -> AsyncIterator[str]:
    name = f"apply-{uuid4().hex[:10]}"
    await client.create(Namespace.named(name))
    yield name
    await client.delete(Namespace, name)


def tampered(rng: Rng, live: Tree) -> Any:
    """Managed fields as a client might send them: cleared, changed, or nonsense."""
    entries = live["metadata"].get("managedFields", [])
    version = rng.choice([live["apiVersion"], live["apiVersion"], "v99"])
    fresh = {"manager": "zoe", "operation": "Update", "apiVersion": version, "fieldsType": "FieldsV1"}
    return rng.choice(
        [
            [],
            [{}],
            entries[:1],
            [*entries, {**fresh, "fieldsV1": {"f:spec": {"f:size": {}}}, "time": "2020-01-01T00:00:00Z"}],
            [*entries, {**fresh, "operation": "Nonsense"}],
            [*entries, {**fresh, "fieldsType": ""}],
            [*entries, {**fresh, "fieldsV1": {"x": {}}}],
            [*entries, {**fresh, "fieldsV1": {"f:data": {".": {}, 'k:{"b":1,"a":2.0}': {}, "q:what": {}}}}],
            [{**entry, "manager": "yan"} for entry in entries],
        ]
    )


async def walk(reference: ReferenceServer, make: Callable[[Rng], Tree], steps: int, rng: Rng) -> None:
    """Random writes by few managers, with a fresh object now and then."""
    for step in range(steps):
        if step % 12 == 0:
            reference.start()
        reference.use_version(rng.choice(list(reference.kinds)))
        manager = rng.choice(["ann", "bob", "kim"])
        body = reference.whole(make(rng), rng.metadata())
        subresource = (
            "status" if reference.live is not None and reference.gvk.kind == "Thing" and rng.random() < 0.25 else ""
        )
        if rng.random() < 0.65:
            await reference.apply(body, manager, force=rng.random() < 0.4, subresource=subresource)
        else:
            if reference.live is not None and rng.random() < 0.15:
                body["metadata"]["managedFields"] = tampered(rng, reference.live)
            await reference.update(body, manager, subresource)
        if reference.live is not None and reference.gvk.kind == "Deployment":
            await reference.refresh()  # its controller writes too


BUILT_IN = {
    "ConfigMap": (GroupVersionKind("", "v1", "ConfigMap"), "/api/v1/namespaces/{namespace}/configmaps", config_map),
    "Service": (GroupVersionKind("", "v1", "Service"), "/api/v1/namespaces/{namespace}/services", service),
    "PodTemplate": (
        GroupVersionKind("", "v1", "PodTemplate"),
        "/api/v1/namespaces/{namespace}/podtemplates",
        lambda rng: {"template": rng.pods()},
    ),
    "Deployment": (
        GroupVersionKind("apps", "v1", "Deployment"),
        "/apis/apps/v1/namespaces/{namespace}/deployments",
        deployment,
    ),
}


@pytest.mark.parametrize("name", BUILT_IN)
async def test_built_in_kinds_are_owned_as_on_the_real_server(client: Client, namespace: str, name: str) -> None:
    gvk, path, make = BUILT_IN[name]
    kind = type_of_kind(gvk)
    assert kind is not None
    reference = ReferenceServer(client, path, {gvk: kind}, namespace)
    await walk(reference, make, STEPS, Rng(SEED))


OTHER_SCHEMA: Tree = {
    **SCHEMA,
    "properties": {
        **SCHEMA["properties"],
        "spec": {
            "type": "object",
            "properties": {
                **SCHEMA["properties"]["spec"]["properties"],
                "granular": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": TEXT},
                "tags": {"type": "array", "items": TEXT},
            },
        },
    },
}
"""Another version, in which some parts are owned as a whole."""


@pytest.fixture(scope="module")
async def group(client: Client) -> AsyncIterator[str]:
    """The group of a custom kind with every sort of list and map, in two versions."""
    group = f"g{uuid4().hex[:8]}.apply.example.io"
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        }
        for name, schema in (("v1", SCHEMA), ("v2", OTHER_SCHEMA))
    ]
    names = {"plural": "things", "kind": "Thing"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await client.request("POST", path, body=msgspec.json.encode(crd))
    while True:
        answer = await client.request("GET", f"{path}/things.{group}")
        conditions = msgspec.json.decode(answer.body).get("status", {}).get("conditions") or ()
        if ("Established", "True") in [(condition["type"], condition["status"]) for condition in conditions]:
            break
    yield group
    await client.request("DELETE", f"{path}/things.{group}")


@pytest.mark.parametrize("versions", [("v1",), ("v1", "v2")], ids=["one version", "two versions"])
async def test_custom_kinds_are_owned_as_on_the_real_server(
    client: Client, namespace: str, group: str, versions: tuple[str, ...]
) -> None:
    schemas = {"v1": SCHEMA, "v2": OTHER_SCHEMA}
    kinds = {GroupVersionKind(group, name, "Thing"): type_of_schema(schemas[name]) for name in versions}
    reference = ReferenceServer(client, f"/apis/{group}/{{version}}/namespaces/{{namespace}}/things", kinds, namespace)
    await walk(reference, custom, STEPS * 2, Rng(SEED))
