"""Writes of objects that are there already, sent to both servers: which of them write, and what they leave behind.

`ServerPair` compares answers. Here the versions count, too: a write that changes nothing must keep the version, or an
operator that writes its objects in every reconcile never rests. `PairOfObjects` is one object on both servers.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
from tests.differential.servers.server_pair import ServerClient, ServerPair, differences, normalized

from kubewright._base.yaml import load_all
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.preparation.strategies import allows_unconditional_update
from kubewright.k8s import documents

__all__ = ("PairOfObjects", "Tree", "field_paths", "path_of", "samples", "title", "with_value")

Tree = dict[str, Any]
Path_ = tuple[str | int, ...]

_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_RANDOM = re.compile(r"(?<=kube-api-access-)[a-z0-9]{5}\b")
_EMPTY = re.compile(r"(?<=\":)(null|\[\]|\{\})")
_DIFF = re.compile(r"\n@@.*?(?=, spec\.|\]$|$)", re.DOTALL)
_SAMPLES = Path(__file__).parents[2] / "unit" / "apiserver" / "builtin" / "created.yaml"
_WRITTEN_TWICE = ("Job", "PersistentVolumeClaim")
"""Kinds whose first update kube-apiserver writes whatever it is: what it stores first, it decodes otherwise."""
_SET_BY_THE_SERVER = ("uid", "creationTimestamp", "managedFields", "resourceVersion", "name", "namespace", "selfLink")


def samples(*more: Tree) -> dict[str, Tree]:
    """Objects as users write them, the least and the most of each kind, by a title."""
    found = [*load_all(_SAMPLES.read_text()), *more]
    return {title(tree): tree for tree in found}


def title(tree: Tree) -> str:
    """Version, kind and name."""
    return f"{tree['apiVersion']} {tree['kind']} {tree['metadata']['name']}"


@cache
def _plurals() -> dict[GroupVersionKind, tuple[str, bool]]:
    return {
        GroupVersionKind(group["metadata"].get("name", ""), version["version"], resource["responseKind"]["kind"]): (
            resource["resource"],
            resource["scope"] == "Namespaced",
        )
        for group in documents.discovery()
        for version in group["versions"]
        for resource in version["resources"]
    }


def path_of(tree: Tree) -> str:
    """The path of the collection of an object; `{ns}` is the namespace of the pair."""
    kind = GroupVersionKind.of(tree["apiVersion"], tree["kind"])
    plural, is_namespaced = _plurals()[kind]
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    return f"{root}/namespaces/{{ns}}/{plural}" if is_namespaced else f"{root}/{plural}"


def field_paths(tree: Any, seen: set[tuple[str, ...]], path: Path_ = ()) -> Iterator[Path_]:
    """The paths of the fields of an object that a client can write, each once, whatever item of a list has it.

    `seen` is what other objects of the kind have had already.
    """
    entries = enumerate(tree) if isinstance(tree, list) else sorted(tree.items()) if isinstance(tree, dict) else ()
    for step, value in entries:
        here = (*path, step)
        is_server_s = here in (("apiVersion",), ("kind",)) or (path == ("metadata",) and step in _SET_BY_THE_SERVER)
        if is_server_s:
            continue
        shape = tuple("*" if isinstance(part, int) else part for part in here)
        if isinstance(step, str) and shape not in seen and here != ("metadata",):
            seen.add(shape)
            yield here
        yield from field_paths(value, seen, here)


def with_value(tree: Tree, path: Path_, word: str) -> Tree:
    """The object without the field at a path (`left out`), or with null (`null`) or an empty value there (`empty`)."""
    changed: Any = deepcopy(tree)
    node = changed
    for step in path[:-1]:
        node = node[step]
    last = path[-1]
    if word == "left out":
        del node[last]
    else:
        node[last] = None if word == "null" else type(node[last])()
    return changed  # type: ignore[no-any-return]


class PairOfObjects:
    """One object on both servers, and the differences between what they answer to writes of it."""

    def __init__(self, pair: ServerPair, tree: Tree, *, collection: str = "") -> None:
        """`collection` is the path of the collection of a custom resource."""
        self.pair = pair
        self._patch_type = _MERGE if collection else _STRATEGIC
        # The names in the table are of one namespace, and cluster-wide ones would meet those of another test.
        tree = self.tree = json.loads(json.dumps(tree).replace("builtin", pair.namespace))
        self.collection = collection or path_of(tree)
        self.path = f"{self.collection}/{tree['metadata']['name']}"
        self.live: list[Tree] = []
        """The object of the real server and that of the embedded one, as they were created."""
        self.code = 0
        """The code of the real server's last answer."""
        self._versions = ["", ""]
        kind = GroupVersionKind.of(tree["apiVersion"], tree["kind"])
        self._names_version = bool(collection) or not allows_unconditional_update(kind)

    async def create(self) -> list[str]:
        """Create it on both; pods find the account that a controller would make."""
        account = {"metadata": {"name": "default"}}
        await self.pair.both("POST", "/api/v1/namespaces/{ns}/serviceaccounts", account)
        answers = await self._both("POST", self.collection, (self.tree, self.tree), "application/json", "")
        assert answers[0]["code"] == 201, answers[0]["body"]["message"]
        self.live = [answer["body"] for answer in answers]
        found = self._compare("create", answers)
        if self.tree["kind"] in _WRITTEN_TWICE:
            await self.replace(self.live, "")
        return found

    async def replace(self, trees: Iterable[Tree], what: str) -> tuple[list[str], bool]:
        """Replace it by an object for each server; returns the differences, and whether the real one wrote."""
        named = [self._with_version(tree, version) for tree, version in zip(trees, self._versions, strict=True)]
        return await self._write("PUT", self.path, named, "application/json", what)

    async def write(self, way: str) -> tuple[list[str], bool]:
        """Write it as its author does: `apply` it by the server or by kubectl (`patch`), or `replace` it."""
        trees, what = (self.tree, self.tree), f"{title(self.tree)}: {way}"
        if way == "replace":
            return await self.replace(trees, what)
        if way == "patch":
            return await self._write("PATCH", self.path, trees, self._patch_type, what)
        query = "?fieldManager=author&force=true"
        return await self._write("PATCH", self.path + query, trees, _APPLY, what)

    def _with_version(self, tree: Tree, version: str) -> Tree:
        metadata = {name: value for name, value in tree["metadata"].items() if name != "resourceVersion"}
        if self._names_version:
            metadata["resourceVersion"] = version
        return {**tree, "metadata": metadata}

    async def _write(
        self, method: str, path: str, trees: Iterable[Tree], content_type: str, what: str
    ) -> tuple[list[str], bool]:
        before = list(self._versions)
        answers = await self._both(method, path, trees, content_type, what)
        self.code = answers[0]["code"]
        for answer, version in zip(answers, before, strict=True):
            answer["wrote"] = answer["version"] != version
        return self._compare(what, answers), answers[0]["wrote"]

    async def _both(
        self, method: str, path: str, trees: Iterable[Tree], content_type: str, what: str
    ) -> tuple[Tree, Tree]:
        servers = (self.pair.real, self.pair.embedded)
        answers: list[Tree] = await asyncio.gather(
            *(self._send(server, method, path, tree, content_type) for server, tree in zip(servers, trees, strict=True))
        )
        for index, answer in enumerate(answers):
            if 200 <= answer["code"] < 300:
                self._versions[index] = answer["body"]["metadata"]["resourceVersion"]
            answer["version"] = self._versions[index]
        return answers[0], answers[1]

    async def _send(self, server: ServerClient, method: str, path: str, tree: Tree, content_type: str) -> Tree:
        sent = {"User-Agent": "rewrites/1", "Content-Type": content_type, "Accept": "application/json"}
        path = path.replace("{ns}", self.pair.namespace)
        try:
            answer = await server.send(method, path, json.dumps(tree).encode(), sent, 30.0)
        except aiohttp.ServerDisconnectedError:
            return {"code": 0, "body": {"message": "a panic"}, "warnings": []}
        return {"code": answer.code, "body": answer.tree, "warnings": sorted(answer.warnings)}

    def _compare(self, what: str, answers: Iterable[Tree]) -> list[str]:
        real, embedded = ({**_shown(answer), "version": ""} for answer in answers)
        if not real["code"]:  # kube-apiserver follows a pointer that is nil here and there
            return [] if embedded["code"] >= 400 else [f"{what}: kube-apiserver panics"]
        lines = differences(real, embedded)
        messages = [line for line in lines if line.startswith(".body.message")]
        return [f"{what}: {line}" for line in messages or lines]  # a message has all that the details have


def _shown(answer: Mapping[str, Any]) -> Tree:
    body = normalized(json.loads(_RANDOM.sub("<random>", json.dumps(answer["body"]))))
    if answer["code"] >= 400:
        # Go tells empty lists and maps from none in its messages; and what a pod's update changed is shown at length.
        body = {"message": _EMPTY.sub("<empty>", _DIFF.sub("<diff>", body["message"]))}
    if isinstance(body, dict) and isinstance(body.get("metadata"), dict) and body["metadata"].get("managedFields"):
        # Nobody writes a status here but the servers, each under a name of its own; the order is that of times.
        fields = [entry for entry in body["metadata"]["managedFields"] if "subresource" not in entry]
        body["metadata"]["managedFields"] = sorted(fields, key=json.dumps)
    return {**answer, "body": body}
