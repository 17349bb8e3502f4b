"""What is true of every example: it is found, it can be tried as it says, and it comes to rest."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples.hello import Greeting
from tests.examples.conftest import FOLDER, ROOT, ApplyManifest, docstring, dynamic, manifests

from kubewright import Client, Config, ObjectKey, connect
from kubewright.api import KubeObject
from kubewright.cluster import EmbeddedCluster
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.batch.v1 import Job
from kubewright.manager import load_operator
from kubewright.testing import VirtualClock, running, until

FILES = sorted(FOLDER.glob("*.py"))
Places = list[tuple[str, ...]]


def test_there_are_ten_and_the_readme_lists_them_all() -> None:
    listed = re.findall(r"^\| \[(\w+\.py)\]\((\w+\.py)\) \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert len(FILES) == 10
    assert sorted(listed) == [(file.name, file.name) for file in FILES]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_says_how_to_try_it_and_needs_public_names_alone(file: Path) -> None:
    assert f"kubewright run --embedded examples/{file.name}" in docstring(file)
    assert "trap" in docstring(file)
    imports = [node.module or "" for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    assert [name for name in imports if re.match(r"kubewright(?!$|\.k8s\.|\.errors$|\.testing$)", name)] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_once_all_stands_looking_again_changes_nothing(
    file: Path, cluster: EmbeddedCluster, client: Client, apply_manifest: ApplyManifest, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BUCKETS", str(tmp_path))
        clock = VirtualClock()  # stands still, so that no schedule is due in between
        await look(file, cluster, clock, before=lambda: apply_manifest(file.stem))
        await workloads_at_rest(client)
        await look(file, cluster, clock)
        stands = await what_stands(client, file)
        await look(file, cluster, clock)
        assert await what_stands(client, file) == stands


async def look(
    file: Path, cluster: EmbeddedCluster, clock: VirtualClock, *, before: Callable[[], Any] | None = None
) -> None:
    """Runs an example until it has looked at each of its objects, and has finished with them."""
    operator = load_operator(str(file))
    seen: set[tuple[str, ObjectKey]] = set()
    looked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def note(obj: KubeObject) -> None:
        seen.add((obj.kind, obj.key))
        loop.call_soon_threadsafe(looked.set)

    for declaration in operator.controllers:
        declaration.reconcile = noted(declaration.reconcile, note)
    async with running(operator, on=cluster, clock=clock) as at_work:
        if before is not None:
            await before()
        wanted = {
            (obj.kind, obj.key)
            for declaration in operator.controllers
            for obj in await at_work.client.list(declaration.kind)
        }
        while not wanted <= seen:
            looked.clear()
            await looked.wait()


def noted(reconcile: Any, note: Callable[[KubeObject], None]) -> Any:
    """The same reconciler, each object of which is noted when it is done."""

    async def awaited(obj: KubeObject, ctx: Any) -> Any:
        answer = await reconcile(obj, ctx)
        note(obj)
        return answer

    def called(obj: KubeObject, ctx: Any) -> Any:
        answer = reconcile(obj, ctx)
        note(obj)
        return answer

    return awaited if inspect.iscoroutinefunction(reconcile) else called


async def workloads_at_rest(client: Client) -> None:
    for deployment in await client.list(Deployment):
        await until(client, Deployment, deployment.key, lambda it: it.status.available_replicas == it.spec.replicas)
    for job in await client.list(Job):
        await until(client, Job, job.key, lambda it: it.status.completion_time)


async def what_stands(client: Client, file: Path) -> Places:
    """Each object of an example and of its children, with what changes when it is written."""
    controllers = load_operator(str(file)).controllers
    own = [declaration.kind for declaration in controllers]
    owned = [owned.kind for declaration in controllers for owned in declaration.owns]
    found: Places = []
    for kind in dict.fromkeys((*own, *owned)):
        for obj in await client.list(kind):
            # The cluster itself writes the status of children; a kind without one counts no generations.
            counts = kind not in own and obj.metadata.generation
            version = str(obj.metadata.generation) if counts else obj.metadata.resource_version
            found.append((kind.kind, str(obj.key), obj.metadata.uid, version))
    return found


async def test_the_command_in_the_docstring_runs_an_example_on_a_cluster_of_its_own() -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubewright.cli", "run", "--embedded", "examples/hello.py", cwd=ROOT,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert child.stdout is not None
    try:
        printed = re.match(r"export KUBECONFIG=(\S+)", (await child.stdout.readline()).decode())
        assert printed is not None
        async with connect(Config.load(kubeconfig=printed[1])) as client:
            for tree in manifests(FOLDER / "hello.py"):
                await client.apply(dynamic(tree))
            greeting = await until(client, Greeting, "world", lambda it: it.status.message)
            assert greeting.status.message == "Hello, world!"
    finally:
        child.send_signal(signal.SIGINT)
        await child.communicate()
    assert child.returncode == 0
