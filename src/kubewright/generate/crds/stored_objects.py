"""Whether the objects stored in a cluster are valid for a new CRD, before it is installed.

Each object is treated as the server would treat it with the new schema: unknown fields are dropped, defaults filled in,
then schema and rules are checked. The result names every object and field that the next write would reject, or that
would be lost. Only reads: nothing in the cluster changes. `crds.compatibility` compares schemas alone, and so also
covers objects that do not exist yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final, final

import msgspec

from kubewright.api.codec import to_tree
from kubewright.api.dynamic import Dynamic, DynamicObject
from kubewright.apiserver.apiextensions.cel_rules import compile_rules
from kubewright.client.client import Client
from kubewright.errors import NotFound
from kubewright.schema.check.defaulting import compile_defaults
from kubewright.schema.check.pruning import compile_pruning
from kubewright.schema.check.validation import compile_schema

__all__ = ("InvalidObject", "StoredObjectsCheck", "check_stored_objects", "installed_crd")

Tree = Mapping[str, Any]
_PAGE_SIZE: Final = 500
_CRD: Final = Dynamic(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)


@final
class InvalidObject(msgspec.Struct, frozen=True, order=True):
    """One object, and what is wrong with it under the new CRD."""

    kind: str
    object: str
    problem: str

    def __str__(self) -> str:
        return f"{self.kind} {self.object}: {self.problem}"


@final
class StoredObjectsCheck(msgspec.Struct, frozen=True):
    """The number of objects, and the invalid ones."""

    objects: int
    invalid: tuple[InvalidObject, ...]


async def installed_crd(client: Client, name: str) -> dict[str, Any] | None:
    """The CRD of that name in the cluster; None if it is not installed."""
    try:
        return to_tree(await client.get(_CRD, name))
    except NotFound:
        return None


async def check_stored_objects(client: Client, crd: Tree) -> StoredObjectsCheck:
    """Check the objects in the cluster against the new CRD; a kind that is not installed has none."""
    present = await installed_crd(client, crd["metadata"]["name"])
    if present is None:
        return StoredObjectsCheck(0, ())
    version = _common_version(present["spec"], crd["spec"])
    spec = crd["spec"]
    kind = spec["names"]["kind"]
    if version is None:
        served = ", ".join(item["name"] for item in present["spec"]["versions"] if item.get("served"))
        return StoredObjectsCheck(
            0, (InvalidObject(kind, "of any name", f"the new CRD has none of the versions served now: {served}"),)
        )
    schema = next(item["schema"]["openAPIV3Schema"] for item in spec["versions"] if item["name"] == version)
    check = await asyncio.to_thread(_SchemaCheck, schema)  # a large schema takes a while
    count, invalid = 0, []
    async for obj in _objects(client, present["spec"], version):
        count += 1
        invalid += [InvalidObject(kind, str(obj.key), problem) for problem in check.problems(to_tree(obj))]
    return StoredObjectsCheck(count, tuple(invalid))


def _common_version(old: Tree, new: Tree) -> str | None:
    """A version that the cluster serves and the new CRD has; the storage version if possible."""
    served = {item["name"] for item in old["versions"] if item.get("served")}
    ordered = sorted(new["versions"], key=lambda item: not item.get("storage"))
    return next((item["name"] for item in ordered if item["name"] in served), None)


async def _objects(client: Client, spec: Tree, version: str) -> AsyncIterator[DynamicObject]:
    names = spec["names"]
    kind = Dynamic(
        f"{spec['group']}/{version}", names["kind"], plural=names["plural"], namespaced=spec["scope"] == "Namespaced"
    )
    token: str | None = None
    while True:
        page = await client.list(kind, limit=_PAGE_SIZE, continue_token=token)
        for obj in page.items:
            yield obj
        token = page.continue_token
        if not token:
            return


@final
class _SchemaCheck:
    """What the server does with an object under one schema."""

    def __init__(self, schema: Tree) -> None:
        self._pruning = compile_pruning(schema)
        self._defaults = compile_defaults(schema)
        self._validator = compile_schema(schema)
        self._rules = compile_rules(schema)

    def problems(self, tree: dict[str, Any]) -> Iterator[str]:
        """What would be lost and what would be rejected; changes the tree."""
        for path in self._pruning.prune(tree):
            yield f"{path} would be dropped: the new schema has no such field"
        self._defaults.apply(tree)
        errors = self._validator.check(tree) or self._rules.check(tree)
        for error in errors:
            yield error.message
