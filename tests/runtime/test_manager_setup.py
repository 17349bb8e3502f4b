"""What an operator says about its manager counts, however it is started.

Covers: kubewright.manager, kubewright.cli, kubewright.testing
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.planes import Plane

from kubewright import Client
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.testing import running, until

pytestmark = pytest.mark.timeout(120)

PACKAGE = {
    "pyproject.toml": '[tool.kubewright]\noperator = "beat_operator"\n',
    "beat_operator/__init__.py": "",
    "beat_operator/controllers.py": """
from kubewright import Context, controller
from kubewright.k8s.core.v1 import ConfigMap

@controller(ConfigMap)
async def reconcile(config: ConfigMap, ctx: Context) -> None:
    if "seen" not in config.metadata.labels:
        config.metadata.labels["seen"] = "yes"
        await ctx.patch(config)
""",
    "beat_operator/manager.py": """
from kubewright import Manager, ManagerOptions, Scope
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.manager import setup_with_manager

@setup_with_manager(scopes={ConfigMap: Scope(labels="case=setup")}, defaults=ManagerOptions(grace_period=5))
def setup(manager: Manager) -> None:
    async def beat() -> None:
        client = manager.client
        options = manager.options
        data = {"grace": f"{options.grace_period:g}"}
        await client.apply(ConfigMap.named("beat", "NAMESPACE", labels={"case": "setup"}, data=data), force=True)
        print("the heart beats", flush=True)

    manager.add(beat)
""",
    "beat_operator/__main__.py": """
from kubewright.manager import run_operator

run_operator("beat_operator")
""",
}


def written(folder: Path, namespace: str) -> Path:
    for name, text in PACKAGE.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text.replace("NAMESPACE", namespace))
    return folder


@pytest.fixture
def project(tmp_path: Path, namespace: str) -> Path:
    return written(tmp_path, namespace)


async def line_with(stream: asyncio.StreamReader, words: str) -> None:
    """Return at the first line that has them."""
    told = []
    async for line in stream:
        told.append(line.decode())
        if words in told[-1]:
            return
    raise AssertionError(f"no line has {words!r}:\n{''.join(told)}")


@asynccontextmanager
async def process(
    folder: Path, *arguments: str, stderr: int | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A Python process, until SIGTERM."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *arguments, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=stderr
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.send_signal(signal.SIGTERM)
        await child.communicate()


async def check(client: Client, namespace: str) -> None:
    """The background task has run, with the option; and what is outside the scope is left alone."""
    beat = await until(
        client, ConfigMap, "beat", lambda seen: "seen" in seen.metadata.labels, namespace=namespace, timeout=60
    )
    plain = await client.get(ConfigMap, "plain", namespace=namespace)

    assert beat.data == {"grace": "5"}
    assert "seen" not in plain.metadata.labels


@pytest.mark.parametrize("started", [("beat_operator",), ("kubewright.cli", "run")], ids=" ".join)
async def test_a_process_runs_what_the_package_adds_to_its_manager(
    plane: Plane, client: Client, namespace: str, project: Path, started: tuple[str, ...]
) -> None:
    await client.create(ConfigMap.named("plain", namespace))
    no_ports = ("--health-probe-bind-address=0", "--metrics-bind-address=0")
    async with process(project, *started, f"--kubeconfig={plane.kubeconfig}", *no_ports):
        await check(client, namespace)


async def test_a_test_runs_what_the_package_adds_to_its_manager(
    plane: Plane, client: Client, namespace: str, project: Path
) -> None:
    await client.create(ConfigMap.named("plain", namespace))
    async with running(str(project), on=plane):
        await check(client, namespace)


async def test_dev_runs_what_the_package_adds_to_its_manager_and_again_after_a_change_of_it(tmp_path: Path) -> None:
    folder = written(tmp_path, "default")
    manager = folder / "beat_operator/manager.py"
    async with process(folder, "kubewright.cli", "dev", stderr=asyncio.subprocess.STDOUT) as child:
        assert child.stdout is not None
        await line_with(child.stdout, "the heart beats")

        manager.write_text(manager.read_text().replace('scopes={ConfigMap: Scope(labels="case=setup")}, ', ""))

        await line_with(child.stdout, "configmap default/kube-root-ca.crt ")  # it has no labels
