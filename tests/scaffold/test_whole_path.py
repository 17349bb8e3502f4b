"""From an empty folder to an operator at work, with nothing but the commands."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kubewright import Client, Config, Dynamic, ObjectKey, connect
from kubewright._base import yaml
from kubewright.api import DynamicObject
from kubewright.api.codec import from_tree
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.cluster.processes.ports import free_ports
from kubewright.errors import Invalid, NotFound
from kubewright.testing import until

from .conftest import Kubewright, output_of

PODSET = Dynamic("apps.whole-path.io/v1alpha1", "PodSet", plural="podsets", namespaced=True)
SIDECARSET = Dynamic("apps.whole-path.io/v1alpha1", "SidecarSet", plural="sidecarsets", namespaced=False)
SECOND = Dynamic("apps.whole-path.io/v1", "SidecarSet", plural="sidecarsets", namespaced=False)


async def test_generated_files_are_up_to_date_after_every_command(kubewright: Kubewright) -> None:
    assert await kubewright("generate", "--check") == ""


async def test_a_project_is_up_to_date_with_the_templates_it_was_made_from(kubewright: Kubewright) -> None:
    assert await kubewright("update", "--check") == ""


@pytest.mark.slow
async def test_the_style_and_the_types_of_a_new_project_are_clean(project: Path) -> None:
    await output_of((sys.executable, "-m", "ruff", "format", "--check", "."), project)
    await output_of((sys.executable, "-m", "ruff", "check", "."), project)
    await output_of((sys.executable, "-m", "mypy"), project)


@pytest.mark.slow
async def test_the_tests_of_a_new_project_pass(project: Path) -> None:
    found = await output_of((sys.executable, "-m", "pytest", "-p", "no:cacheprovider"), project)

    assert "7 passed" in found


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_operator_works_on_the_embedded_cluster(
    embedded_cluster: EmbeddedCluster, project: Path, kubewright: Kubewright
) -> None:
    await embedded_cluster.wait_for_controllers()
    await walk(embedded_cluster.kubeconfig, project, kubewright)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_operator_works_on_a_real_control_plane(
    real_cluster: RealCluster, project: Path, kubewright: Kubewright
) -> None:
    await walk(real_cluster.kubeconfig, project, kubewright)


async def walk(kubeconfig: Path, project: Path, kubewright: Kubewright) -> None:
    """Install, have it looked at, run, apply the sample, see the status, ask the webhooks, uninstall."""
    await kubewright("install", "--kubeconfig", str(kubeconfig))
    found = json.loads(await kubewright("doctor", "--kubeconfig", str(kubeconfig), "-o", "json"))
    hints = [item for item in found if item["result"] != "good"]
    assert [(item["result"], item["about"]) for item in hints] == [("hint", "webhooks")], hints
    assert "nobody answers for the conversion of " in hints[0]["text"]  # the operator does not run yet
    async with connect(Config.load(kubeconfig=kubeconfig)) as client:
        async with running(project, kubeconfig):
            sample = project / "config/samples/apps_v1alpha1_podset.yaml"
            await client.create(from_tree(PODSET, yaml.load(sample.read_text())), namespace="default")
            seen = await settled(client, "podset-sample")
            assert seen["status"]["replicas"] == 1
            assert seen["status"]["podNames"] == ["podset-sample-0"]
            await check_tree(kubewright, kubeconfig)
            await check_webhooks(client)
            await check_conversion(client)
        await kubewright("uninstall", "--kubeconfig", str(kubeconfig), "--yes")
        with pytest.raises(NotFound):
            await client.get(PODSET, "podset-sample", namespace="default")


async def check_tree(kubewright: Kubewright, kubeconfig: Path) -> None:
    # By its whole name: other tests leave kinds of the same name behind.
    arguments = (
        "tree",
        "podsets.apps.whole-path.io",
        "podset-sample",
        "-n",
        "default",
        "--kubeconfig",
        str(kubeconfig),
    )
    found = json.loads(await kubewright(*arguments, "-o", "json"))
    drawn = await kubewright(*arguments)

    assert (found["kind"], found["children"]) == ("PodSet", [])
    assert [item["type"] for item in found["conditions"]] == ["Ready"]
    assert drawn.startswith("PodSet/podset-sample  Ready=True (Reconciled)")
    assert "\x1b" not in drawn


async def check_webhooks(client: Client) -> None:
    made = await client.create(SIDECARSET.named("web", content={"spec": {"replicas": 1}}))
    assert made.metadata.labels == {"app.kubernetes.io/managed-by": "pods-operator"}
    with pytest.raises(Invalid, match="must be no more than 52 characters"):
        await client.create(SIDECARSET.named("a" * 53, content={"spec": {"replicas": 1}}))


async def check_conversion(client: Client) -> None:
    """What was written in one version is read in the other, and back; the webhooks of the one are asked about both."""
    assert (await client.get(SECOND, "web"))["spec"] == {"size": 1}

    made = await client.create(SECOND.named("newer", content={"spec": {"size": 4}}))

    assert made.metadata.labels == {"app.kubernetes.io/managed-by": "pods-operator"}
    assert (await client.get(SIDECARSET, "newer"))["spec"] == {"replicas": 4}
    with pytest.raises(Invalid, match="must be no more than 52 characters"):
        await client.create(SECOND.named("b" * 53, content={"spec": {"size": 1}}))
    for name in ("newer", "web"):
        await client.delete(SECOND, name)


@asynccontextmanager
async def running(project: Path, kubeconfig: Path) -> AsyncIterator[None]:
    """`kubewright run` in the background, from when its webhooks are registered until it is interrupted."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubewright.cli", "run", "--kubeconfig", str(kubeconfig),
        cwd=project,
        env={**os.environ, "KUBEWRIGHT_WEBHOOK_PORT": str(free_ports(1)[0]), "KUBEWRIGHT_LOG_FORMAT": "json"},
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stderr is not None
    told = b""
    async for line in child.stderr:
        told += line
        if b"the cluster calls webhooks on this machine" in line:
            break
    assert b"the cluster calls webhooks" in told, told.decode()
    rest = asyncio.create_task(child.stderr.read())  # so that it never waits for us to read
    try:
        yield
    finally:
        child.send_signal(signal.SIGINT)
        told += await rest
        code = await child.wait()
    assert code == 0, told.decode()


async def settled(client: Client, name: str) -> DynamicObject:
    def holds(found: Any) -> bool:
        return bool(found.get("status.observedGeneration") == found.metadata.generation)

    return await until(client, PODSET, ObjectKey("default", name), holds, timeout=100)
