"""Sequences nobody thought of: random patches, applies and schemas, the same on both servers.

Each case is drawn from its number, so that a failure can be had again. What both servers refuse is compared as well as
what they accept, and the case goes on with whatever has become of the object.

Covers: kubewright.apiserver.verbs, kubewright.apiserver.managedfields
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.builders.definitions import definition_tree, version_tree
from tests.differential.servers.server_pair import (
    Request,
    ServerPair,
    apply,
    get,
    json_patch,
    merge,
    post,
    run_case,
    strategic,
)

pytestmark = pytest.mark.real

NS = "/api/v1/namespaces/{ns}"
CMS, SERVICES = f"{NS}/configmaps", f"{NS}/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "{ns}.example.io"
THINGS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/things"

Draw = random.Random
Tree = dict[str, Any]


def some(draw: Draw, *options: Any) -> Any:
    """One of them."""
    return draw.choice(options)


def texts(draw: Draw) -> Tree:
    """A map of texts, some of them to be removed."""
    return {key: some(draw, "1", "2", "", None) for key in draw.sample("abcd", draw.randint(0, 3))}


def metadata(draw: Draw) -> Tree:
    """A change of metadata."""
    found: Tree = {}
    for name in draw.sample(["labels", "annotations", "finalizers"], draw.randint(0, 2)):
        found[name] = texts(draw) if name != "finalizers" else draw.sample(["x.io/a", "x.io/b"], draw.randint(0, 2))
    return found


def of_config_map(draw: Draw) -> Tree:
    """A change of a ConfigMap."""
    parts = {"data": texts(draw), "metadata": metadata(draw), "binaryData": {"x": some(draw, "eA==", None)}}
    return {name: parts[name] for name in draw.sample(sorted(parts), draw.randint(1, 2))}


def container(draw: Draw) -> Tree:
    """A change of a container, by its name."""
    found: Tree = {"name": some(draw, "a", "b"), "image": some(draw, "x:1", "x:2")}
    if draw.random() < 0.5:
        names = draw.sample("PQR", draw.randint(0, 3))
        found["env"] = [{"name": name, "value": some(draw, "1", "2")} for name in names]
    if draw.random() < 0.4:
        found["ports"] = [{"containerPort": port} for port in draw.sample([80, 81], draw.randint(0, 2))]
    if draw.random() < 0.3:
        found["resources"] = {"limits": {"cpu": some(draw, "1", "500m", None), "memory": some(draw, "1Gi", None)}}
    if draw.random() < 0.3:
        found["args"] = draw.sample(["-a", "-b"], draw.randint(0, 2))
    return found


def of_deployment(draw: Draw) -> Tree:
    """A change of a deployment."""
    spec: Tree = {}
    if draw.random() < 0.5:
        spec["replicas"] = some(draw, 0, 1, 2, None, -1)
    if draw.random() < 0.3:
        spec["strategy"] = some(draw, {"type": "Recreate", "rollingUpdate": None}, {"type": "RollingUpdate"}, None)
    if draw.random() < 0.6:
        pod: Tree = {"containers": [container(draw)]}
        if draw.random() < 0.3:
            pod["nodeSelector"] = texts(draw)
        if draw.random() < 0.3:
            pod["tolerations"] = [{"key": key, "operator": "Exists"} for key in draw.sample("xy", draw.randint(0, 2))]
        spec["template"] = {"spec": pod}
    return {"spec": spec, "metadata": metadata(draw)}


def of_service(draw: Draw) -> Tree:
    """A change of a Service."""
    spec: Tree = {}
    if draw.random() < 0.6:
        ports = draw.sample([80, 81, 82], draw.randint(1, 2))
        spec["ports"] = [{"name": f"p{port}", "port": port, "targetPort": some(draw, 8080, "http")} for port in ports]
    if draw.random() < 0.4:
        spec["selector"] = texts(draw)
    if draw.random() < 0.3:
        spec["sessionAffinity"] = some(draw, "ClientIP", "None", "Foo")
    return {"spec": spec, "metadata": metadata(draw)}


def of_thing(draw: Draw) -> Tree:
    """A change of a custom object."""
    spec: Tree = {}
    for name in draw.sample(["size", "items", "tags", "free", "map", "one"], draw.randint(1, 4)):
        if name == "items":
            keys = draw.sample("abc", draw.randint(0, 3))
            spec[name] = [{"name": key, "value": some(draw, 1, 2)} for key in keys]
        elif name == "tags":
            spec[name] = draw.sample(["x", "y", "z"], draw.randint(0, 3))
        elif name == "size":
            spec[name] = some(draw, 1, 50, 500, "x", None)
        elif name == "one":
            spec[name] = some(draw, {"a": "1"}, {"b": "2"}, {"a": "1", "b": "2"}, None)
        else:
            spec[name] = texts(draw)
    return {"spec": spec, "metadata": metadata(draw)}


FIRST: dict[str, tuple[str, Tree, Callable[[Draw], Tree]]] = {
    "ConfigMap": (CMS, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "0"}}, of_config_map),
    "Deployment": (
        DEPLOYMENTS,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {
                "selector": {"matchLabels": {"app": "x"}},
                "template": {
                    "metadata": {"labels": {"app": "x"}},
                    "spec": {"containers": [{"name": "a", "image": "x:0", "env": [{"name": "P", "value": "0"}]}]},
                },
            },
        },
        of_deployment,
    ),
    "Service": (
        SERVICES,
        {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"name": "p80", "port": 80}]}},
        of_service,
    ),
}


def operations(draw: Draw, tree: Tree, path: str = "") -> list[Tree]:
    """A merge patch as operations of a JSON patch, some of which may not fit."""
    found: list[Tree] = []
    for name, value in tree.items():
        below = f"{path}/{name.replace('/', '~1')}"
        if isinstance(value, dict) and value and draw.random() < 0.7:
            found += operations(draw, value, below)
        elif value is None:
            found.append({"op": "remove", "path": below})
        else:
            found.append({"op": some(draw, "add", "add", "replace"), "path": below, "value": value})
    return found


def patch(draw: Draw, path: str, change: Tree, *, of_custom: bool = False) -> Request:
    """One patch of any kind."""
    manager = some(draw, "", "?fieldManager=m1", "?fieldManager=m2")
    kind = some(draw, "merge", "json", *([] if of_custom else ["strategic", "strategic"]))
    if kind == "merge":
        return merge(path + manager, change)
    if kind == "json":
        return json_patch(path + manager, *operations(draw, change))
    return strategic(path + manager, change)


def without_nulls(tree: Any) -> Any:
    """What is applied says what shall be, not what shall go."""
    if isinstance(tree, dict):
        return {name: without_nulls(value) for name, value in tree.items() if value is not None}
    return [without_nulls(item) for item in tree] if isinstance(tree, list) else tree


@pytest.mark.parametrize("kind", FIRST)
@pytest.mark.parametrize("seed", range(14))
async def test_random_patches_make_the_same_of_an_object(quiet_pair: ServerPair, kind: str, seed: int) -> None:
    draw = random.Random(f"patches of {kind} {seed}")
    path, first, change = FIRST[kind]
    requests = [post(path, {**first, "metadata": {"name": "x"}})]
    requests += [patch(draw, f"{path}/x", change(draw)) for _ in range(8)]
    await run_case(quiet_pair, [*requests, get(f"{path}/x")])


@pytest.mark.parametrize("kind", FIRST)
@pytest.mark.parametrize("seed", range(10))
async def test_random_applies_by_two_managers_make_the_same(quiet_pair: ServerPair, kind: str, seed: int) -> None:
    draw = random.Random(f"applies of {kind} {seed}")
    path, first, change = FIRST[kind]
    requests = [apply(f"{path}/x", {**first, "metadata": {"name": "x"}}, manager="m1")]
    for _ in range(8):
        wanted = without_nulls(change(draw))
        tree = {"apiVersion": first["apiVersion"], "kind": first["kind"], **wanted}
        tree["metadata"] = {"name": "x", **wanted.get("metadata", {})}
        if draw.random() < 0.25:
            requests.append(patch(draw, f"{path}/x", change(draw)))
        requests.append(apply(f"{path}/x", tree, manager=some(draw, "m1", "m2"), force=draw.random() < 0.4))
    # Entries of managedFields are ordered by their seconds, and a new order is a new version: whether an apply that
    # changes nothing else makes one depends on when in a second it comes.
    requests = [replace(request, ignore=("metadata.resourceVersion",)) for request in (*requests, get(f"{path}/x"))]
    await run_case(quiet_pair, requests)


SPEC: Tree = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "maximum": 100, "default": 7},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "value": {"type": "integer"}, "more": {"type": "string"}},
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "map": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}},
        "one": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        },
    },
    "x-kubernetes-validations": [{"rule": "!has(self.tags) || self.tags.size() < 3", "message": "too many"}],
}


def definition(spec: Tree) -> Tree:
    """The definition of things."""
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    return definition_tree(
        "things", GROUP, kind="Thing", versions=[version_tree(schema=schema, subresources={"status": {}})]
    )


def installed(spec: Tree) -> list[Request]:
    """Define things and wait until they are served."""
    return [
        post(CRDS, definition(spec), ignore=("metadata.managedFields",)),
        get(THINGS, until=lambda tree: isinstance(tree, dict) and tree.get("kind") != "Status", quiet=True),
    ]


def thing(name: str, **members: Any) -> Tree:
    """One custom object."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": name}, **members}


async def test_random_patches_and_applies_make_the_same_of_custom_objects(quiet_pair: ServerPair) -> None:
    draw = random.Random("custom objects")
    requests = installed(SPEC)
    for number in range(24):
        path = f"{THINGS}/t{number}"
        requests.append(apply(path, thing(f"t{number}", spec=without_nulls(of_thing(draw)["spec"])), manager="m1"))
        for _ in range(6):
            change = of_thing(draw)
            if draw.random() < 0.5:
                requests.append(patch(draw, path, change, of_custom=True))
                continue
            tree = thing(f"t{number}", spec=without_nulls(change["spec"]))
            requests.append(apply(path, tree, manager=some(draw, "m1", "m2"), force=draw.random() < 0.4))
        requests.append(get(path))
    await run_case(quiet_pair, requests)


def schema(draw: Draw, depth: int = 0) -> Tree:
    """A structural schema."""
    kind = some(draw, "string", "integer", "number", "boolean", *(["object", "array", "object"] if depth < 3 else []))
    found: Tree = {"type": kind}
    if kind == "object":
        names = draw.sample("abc", draw.randint(1, 3))
        if draw.random() < 0.25:
            found["additionalProperties"] = schema(draw, depth + 1)
        else:
            found["properties"] = {name: schema(draw, depth + 1) for name in names}
            if draw.random() < 0.3:
                found["required"] = draw.sample(names, 1)
            if draw.random() < 0.2:
                found["x-kubernetes-preserve-unknown-fields"] = True
    elif kind == "array":
        found["items"] = schema(draw, depth + 1)
        found |= some(draw, {}, {"maxItems": 2}, {"minItems": 1})
    elif kind == "string":
        found |= some(draw, {}, {"enum": ["a", "b"]}, {"maxLength": 2}, {"pattern": "^a"}, {"default": "a"})
    elif kind in ("integer", "number"):
        found |= some(draw, {}, {"minimum": 1}, {"maximum": 3}, {"multipleOf": 2}, {"default": 2})
    if draw.random() < 0.15:
        found["nullable"] = True
    return found


def value(draw: Draw, shape: Tree) -> Any:
    """A value that fits a schema, more or less."""
    if draw.random() < 0.08:
        return some(draw, None, "x", 7, True, [], {}, 1.5)
    kind = shape["type"]
    if kind == "object":
        known: dict[str, Any] = shape.get("properties") or dict.fromkeys("pq", shape["additionalProperties"])
        found = {name: value(draw, part) for name, part in known.items() if draw.random() < 0.8}
        return {**found, "z": 1} if draw.random() < 0.15 else found
    if kind == "array":
        return [value(draw, shape["items"]) for _ in range(draw.randint(0, 3))]
    if kind == "string":
        return some(draw, "a", "b", "abc", "")
    return some(draw, True, False) if kind == "boolean" else some(draw, 0, 1, 2, 4)


@pytest.mark.parametrize("seed", range(4))
async def test_objects_of_a_random_schema_are_treated_alike(quiet_pair: ServerPair, seed: int) -> None:
    draw = random.Random(f"schema {seed}")
    parts = {name: schema(draw, 1) for name in "klmno"}
    requests = installed({"type": "object", "properties": parts})
    for number in range(20):
        spec = {name: value(draw, part) for name, part in parts.items() if draw.random() < 0.7}
        requests.append(post(THINGS, thing(f"t{number}", spec=spec)))
        requests.append(
            merge(f"{THINGS}/t{number}", {"spec": {name: value(draw, part) for name, part in parts.items()}})
        )
    await run_case(quiet_pair, requests)
