"""Fixtures of the examples' tests: each example runs from its file, as the docstring in it says, with its own role.

What a docstring tells people to apply is what a test starts from, so that neither can go out of date.

Covers: kubewright
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kubewright import Client, Cluster, Dynamic
from kubewright._base import yaml
from kubewright.api import DynamicObject, from_tree
from kubewright.cluster import EmbeddedCluster
from kubewright.k8s.core.v1 import Namespace
from kubewright.testing import RunningOperator, VirtualClock, running

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples"

RunExample = Callable[..., AbstractAsyncContextManager[RunningOperator]]
ApplyManifest = Callable[[str], Awaitable[None]]


@pytest.fixture(scope="module")
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    """A cluster for the tests of a module."""
    async with Cluster.embedded() as cluster:
        await cluster.wait_for_controllers()
        yield cluster


@pytest.fixture(scope="module")
def client(cluster: EmbeddedCluster) -> Client:
    """The administrator's client."""
    return cluster.client


@pytest.fixture(autouse=True)
def no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """An example waits for what is not there yet, and says so in a status; it fails nowhere."""
    yield
    errors = [record.getMessage() for record in caplog.get_records("call") if record.levelname == "ERROR"]
    assert errors == []


@pytest.fixture
async def namespace(client: Client) -> str:
    """A fresh namespace; the cluster ends before it would be worth deleting."""
    name = f"case-{uuid4().hex[:10]}"
    await client.create(Namespace.named(name))
    return name


@pytest.fixture
def run_example(cluster: EmbeddedCluster) -> RunExample:
    """`async with run_example("hello")`: the example at work, as the account its generated roles are for."""

    def run(name: str, **options: Any) -> AbstractAsyncContextManager[RunningOperator]:
        return running(str(FOLDER / f"{name}.py"), on=cluster, **options)

    return run


@pytest.fixture
def apply_manifest(client: Client) -> ApplyManifest:
    """Does to the cluster what the docstring of an example tells people to do."""

    async def apply(name: str) -> None:
        for tree in manifests(FOLDER / f"{name}.py"):
            await client.apply(dynamic(tree), force=True)

    return apply


def docstring(file: Path) -> str:
    """What an example says of itself."""
    return ast.get_docstring(ast.parse(file.read_text())) or ""


def manifests(file: Path) -> list[dict[str, Any]]:
    """The objects of the first manifest in a docstring."""
    found = re.search(r"echo '\n(.*?)' \| kubectl apply -f -", docstring(file), re.DOTALL)
    assert found is not None, f"{file.name} tells nobody what to apply"
    (tree,) = yaml.load_all(textwrap.dedent(found[1]))
    return list(tree["items"]) if tree["kind"] == "List" else [tree]


def dynamic(tree: dict[str, Any]) -> DynamicObject:
    """An object of any kind."""
    return from_tree(Dynamic(tree["apiVersion"], tree["kind"]), tree)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()
