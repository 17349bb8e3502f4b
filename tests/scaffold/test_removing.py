"""`kubewright uninstall` and `undeploy`: they ask, and objects go before the operator that finalizes them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubewright import Client, Context, Dynamic, ObjectKey, Resource, Spec, Status, controller
from kubewright._base import yaml
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.install import CRD, install_crds
from kubewright.cluster.planes.cluster import Cluster
from kubewright.generate.crds.manifests import crd_for
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.testing import gone, running, until

pytestmark = pytest.mark.timeout(120)

NAME = "parcels.removing.example.io"
FINALIZER = "removing.example.io/parcels"
PARCEL = Dynamic("removing.example.io/v1", "Parcel", plural="parcels", namespaced=True)
OPERATOR = '''
from kubewright import Context, Resource, Spec, Status, controller

class Parcel(Resource[Spec, Status], group="removing.example.io", version="v1"):
    """A parcel."""

@controller(Parcel)
async def reconcile(parcel: Parcel, ctx: Context) -> None: ...
'''


class Parcel(Resource[Spec, Status], group="removing.example.io", version="v1"):
    """A parcel."""


class Parcels:
    """The operator while it runs."""

    async def reconcile(self, parcel: Parcel, ctx: Context) -> None: ...

    async def finalize(self, parcel: Parcel, ctx: Context) -> None: ...


PARCELS = controller(Parcel, finalizer=FINALIZER)(Parcels)


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Cluster:
    found = request.getfixturevalue(getattr(request, "param", "embedded_cluster"))
    assert isinstance(found, Cluster)
    return found


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    """With the CRD, one object, and a ConfigMap that stands for the operator."""
    client = cluster.client
    await install_crds(client, Parcel)
    await client.create(PARCEL.named("a", "default"))
    await client.apply(ConfigMap.named("removing-operator", "default"), force=True)
    yield client
    for parcel in await client.list(PARCEL) if await client.find(CRD, NAME) else ():
        await client.patch_by_name(PARCEL, parcel.key, {"metadata": {"finalizers": None}})
    with contextlib.suppress(Exception):
        await client.delete(CRD, NAME)
    await gone(client, CRD, NAME)


@pytest.fixture
def folder(tmp_path: Path, real_binaries: Binaries) -> Path:
    """A file with an operator, and an overlay that deploys one."""
    assert real_binaries.kubectl.exists()  # it builds the overlay
    (tmp_path / "parcels.py").write_text(OPERATOR)
    overlay = tmp_path / "config/default"
    overlay.mkdir(parents=True)
    (overlay / "kustomization.yaml").write_text(yaml.dump({"resources": ["crd.yaml", "operator.yaml"]}))
    (overlay / "crd.yaml").write_text(yaml.dump(crd_for(Parcel)))
    operator = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "removing-operator", "namespace": "default"},
    }
    (overlay / "operator.yaml").write_text(yaml.dump(operator))
    return tmp_path


COMMANDS = [("uninstall", "parcels.py"), ("undeploy",)]
on_both_planes = pytest.mark.parametrize(
    "cluster", ["embedded_cluster", pytest.param("real_cluster", marks=pytest.mark.real)], indirect=True
)
commands = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])


async def run(folder: Path, cluster: Cluster, *arguments: str, stdin: int | None = None) -> tuple[int, str]:
    """The exit code of a command, and what it said on standard error."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubewright.cli", *arguments, "--kubeconfig", str(cluster.kubeconfig),
        cwd=folder, stdin=asyncio.subprocess.PIPE if stdin is None else stdin, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, stderr = await child.communicate(b"y\n" if stdin is None else None)
    return child.returncode or 0, stderr.decode()


async def answering(folder: Path, cluster: Cluster, *arguments: str, answer: str) -> tuple[int, str]:
    """The same, with a terminal on which somebody types."""
    here, there = os.openpty()
    os.write(here, f"{answer}\n".encode())
    try:
        return await run(folder, cluster, *arguments, stdin=there)
    finally:
        os.close(here)
        os.close(there)


@commands
async def test_without_a_terminal_nothing_is_deleted_unless_it_says_yes(
    cluster: Cluster, client: Client, folder: Path, command: tuple[str, ...]
) -> None:
    code, said = await run(folder, cluster, *command)

    assert code == 2
    assert "no terminal to ask on, so nothing was done; add --yes" in said
    assert (await client.get(PARCEL, "a", namespace="default")).metadata.deletion_timestamp is None
    assert await client.find(ConfigMap, "removing-operator", namespace="default")


@commands
async def test_a_person_is_told_what_goes_and_may_say_no(
    cluster: Cluster, client: Client, folder: Path, command: tuple[str, ...]
) -> None:
    code, said = await answering(folder, cluster, *command, answer="n")

    assert code == 1
    assert f"CustomResourceDefinition {NAME}, and with it 1 object of its kind" in said
    assert said.splitlines()[-1].endswith("nothing was deleted")
    assert await client.find(PARCEL, "a", namespace="default")


@commands
async def test_a_person_who_says_yes_gets_it(
    cluster: Cluster, client: Client, folder: Path, command: tuple[str, ...]
) -> None:
    code, said = await answering(folder, cluster, *command, answer="y")

    assert code == 0, said
    assert await client.find(CRD, NAME) is None


@on_both_planes
@commands
async def test_what_hangs_is_named_and_the_operator_stays(
    cluster: Cluster, client: Client, folder: Path, command: tuple[str, ...]
) -> None:
    await client.patch_by_name(PARCEL, ObjectKey("default", "a"), {"metadata": {"finalizers": [FINALIZER]}})

    code, said = await run(folder, cluster, *command, "--yes", "--timeout", "1")

    assert code == 1
    assert f"after 1 s 1 object is still there: Parcel default/a (finalizers: {FINALIZER})" in said
    freeing = "kubectl patch parcels.removing.example.io a --namespace default --type merge --patch"
    assert freeing in said
    assert await client.find(ConfigMap, "removing-operator", namespace="default")
    crd = await client.get(CRD, NAME)
    assert crd.metadata.deletion_timestamp is None


@on_both_planes
@commands
async def test_objects_are_finalized_by_the_operator_that_still_runs(
    cluster: Cluster, client: Client, folder: Path, command: tuple[str, ...]
) -> None:
    async with running(PARCELS, on=cluster):
        await until(client, PARCEL, ObjectKey("default", "a"), lambda parcel: FINALIZER in parcel.metadata.finalizers)

        code, said = await run(folder, cluster, *command, "--yes")

    assert code == 0, said
    assert await client.find(CRD, NAME) is None


async def test_kept_objects_that_need_the_operator_are_named(cluster: Cluster, client: Client, folder: Path) -> None:
    await client.patch_by_name(PARCEL, ObjectKey("default", "a"), {"metadata": {"finalizers": [FINALIZER]}})

    code, said = await run(folder, cluster, "undeploy", "--keep-crds", "--yes")

    assert code == 0, said
    assert f"Parcel default/a (finalizers: {FINALIZER}) stays" in said
    assert await client.find(ConfigMap, "removing-operator", namespace="default") is None
    assert await client.find(PARCEL, "a", namespace="default")
