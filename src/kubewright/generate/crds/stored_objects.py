"""Whether the objects that a cluster holds fit a new CRD, before it is installed.

Each object is treated as the server would treat it with the new schema: unknown fields are dropped, defaults filled in,
then schema and rules are checked. What would be refused at the next write, and what would be lost, is told by object
and field. Only reads: nothing in the cluster changes. `generate.crds.compatibility` compares schemas alone, and so also
knows of objects that may come.
"""

from __future__ import annotations

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

__all__ = ("Misfit", "Outcome", "installed_crd", "stored_misfits")

Tree = Mapping[str, Any]
_PAGE: Final = 500
_CRD: Final = Dynamic(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)


@final
class Misfit(msgspec.Struct, frozen=True, order=True):
    """One object, and what would become of it."""

    kind: str
    object: str
    problem: str

    def __str__(self) -> str:
        return f"{self.kind} {self.object}: {self.problem}"


@final
class Outcome(msgspec.Struct, frozen=True):
    """How many objects there are, and what is wrong with some."""

    objects: int
    misfits: tuple[Misfit, ...]


async def installed_crd(client: Client, name: str) -> dict[str, Any] | None:
    """The CRD of that name as the cluster has it; None if it is not installed."""
    try:
        return to_tree(await client.get(_CRD, name))
    except NotFound:
        return None


async def stored_misfits(client: Client, crd: Tree) -> Outcome:
    """What the new CRD would do to the objects in the cluster; a kind that is not installed has none."""
    present = await installed_crd(client, crd["metadata"]["name"])
    if present is None:
        return Outcome(0, ())
    version = _common_version(present["spec"], crd["spec"])
    spec = crd["spec"]
    kind = spec["names"]["kind"]
    if version is None:
        served = ", ".join(item["name"] for item in present["spec"]["versions"] if item.get("served"))
        return Outcome(0, (Misfit(kind, "of any name", f"the new CRD has none of the versions served now: {served}"),))
    schema = next(item["schema"]["openAPIV3Schema"] for item in spec["versions"] if item["name"] == version)
    trial = _Trial(schema)
    count, misfits = 0, []
    async for obj in _objects(client, present["spec"], version):
        count += 1
        misfits += [Misfit(kind, str(obj.key), problem) for problem in trial.problems(to_tree(obj))]
    return Outcome(count, tuple(misfits))


def _common_version(old: Tree, new: Tree) -> str | None:
    """A version that the cluster serves and the new CRD has; the one to be stored if it can be."""
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
        page = await client.list(kind, limit=_PAGE, continue_token=token)
        for obj in page.items:
            yield obj
        token = page.continue_token
        if not token:
            return


@final
class _Trial:
    """What the server does with an object under one schema."""

    def __init__(self, schema: Tree) -> None:
        self._pruning = compile_pruning(schema)
        self._defaults = compile_defaults(schema)
        self._validator = compile_schema(schema)
        self._rules = compile_rules(schema)

    def problems(self, tree: dict[str, Any]) -> Iterator[str]:
        """What would be lost and what would be refused; the tree is changed."""
        for path in self._pruning.prune(tree):
            yield f"{path} would be dropped: the new schema has no such field"
        self._defaults.apply(tree)
        errors = self._validator.check(tree) or self._rules.check(tree)
        for error in errors:
            yield error.message
