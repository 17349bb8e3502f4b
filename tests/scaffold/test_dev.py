"""`kubewright dev`: a change of the code is at work before its author is back at the other window."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from kubewright.testing.time_limits import slowness


async def until(stream: asyncio.StreamReader, pattern: str) -> re.Match[str]:
    """The first line that matches, within the time of the test."""
    told = []
    async for line in stream:
        told.append(line.decode())
        if found := re.search(pattern, told[-1]):
            return found
    raise AssertionError(f"no line matches {pattern!r}:\n{''.join(told)}")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the kubeconfig is."""
    monkeypatch.setenv("KUBEWRIGHT_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_change_is_at_work_at_once_and_a_mistake_is_told(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pods-operator"
    shutil.copytree(project, folder)
    code = folder / "pods_operator/controllers/podset.py"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubewright.cli", "dev", "--samples", cwd=folder,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stderr is not None
    try:
        await until(child.stderr, r"podset default/podset-sample  .* ok  because: PodSet default/podset-sample added")
        text = code.read_text()

        code.write_text(text + "broken(\n")
        await until(child.stderr, r"controllers.podset cannot be imported: .*podset.py, line [0-9]+: SyntaxError")

        code.write_text(text.replace("ctx.condition(", 'raise RuntimeError("new code")\n    ctx.condition('))
        reloaded = await until(child.stderr, r"started in ([0-9.]+) s: 3 controllers, 5 webhooks, watches kept open: 1")
        await until(child.stderr, r"podset default/podset-sample  .* RuntimeError: new code  because: ")
    finally:
        child.send_signal(signal.SIGINT)
        await child.communicate()

    assert child.returncode == 0
    # A fifth of a second on an idle machine; what a start could wait for in vain takes half a minute.
    assert float(reloaded[1]) < 15 * slowness()


ONE_FILE = """
from kubewright import Context, controller
from kubewright.k8s.core.v1 import Namespace
from beside import word

@controller(Namespace)
async def reconcile(namespace: Namespace, ctx: Context) -> None:
    if namespace.metadata.name == "default":
        raise RuntimeError(word)
"""


@pytest.mark.timeout(300)
async def test_a_single_file_needs_no_project(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(ONE_FILE)
    (tmp_path / "beside.py").write_text("word = 'first'\n")
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubewright.cli", "dev", str(tmp_path / "alone.py"), "--merge",
        "--data", str(tmp_path / "data"), cwd=tmp_path.parent, env={**os.environ, "KUBECONFIG": str(tmp_path / "mine")},
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stderr is not None
    try:
        await until(child.stderr, r"started: 1 controller$")
        await until(child.stderr, r"namespace default  .* RuntimeError: first  because: ")

        (tmp_path / "beside.py").write_text("word = (\n")
        # A library that watches the files has logged that they changed, which nobody needs to know twice.
        found = await until(child.stderr, r"changed; starting again|change.? detected")
        assert found.string.startswith("beside.py changed; starting again")
        await until(child.stderr, r"alone cannot be imported: .*beside.py, line 1: SyntaxError")

        (tmp_path / "beside.py").write_text("word = 'second'\n")
        await until(child.stderr, r"namespace default  .* RuntimeError: second  because: ")
    finally:
        child.send_signal(signal.SIGINT)
        await child.communicate()

    assert child.returncode == 0
    assert (tmp_path / "data/store").exists()
    assert "kubewright-dev-alone" in (tmp_path / "mine").read_text()


DIES = """
from kubewright import Context, controller
from kubewright.k8s.core.v1 import Namespace

@controller(Namespace)
class Keeper:
    async def reconcile(self, namespace: Namespace, ctx: Context) -> None: ...

    async def setup(self, started: object) -> None:
        raise LookupError("no key")
"""
MENDED = DIES.replace('raise LookupError("no key")', "...")
BREAKS = MENDED.replace("@controller(Namespace)", "@controller(Namespace, sources=[Door()])").replace(
    "@controller",
    """
class Door:
    async def run(self, queue) -> None:
        import asyncio
        import pathlib
        while not pathlib.Path(__file__).with_name("open").exists():
            await asyncio.sleep(0.05)
        raise LookupError("no door")

    async def wait_for_sync(self) -> None: ...

@controller""",
    1,
)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_controller_that_dies_is_told_and_the_next_change_is_tried(tmp_path: Path) -> None:
    code = tmp_path / "keeper.py"
    code.write_text(DIES)
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubewright.cli", "dev", str(code),
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stderr is not None
    try:
        await until(child.stderr, r"controller namespace: setup failed in .*keeper.py, line 10: LookupError: no key")
        code.write_text(MENDED)
        await until(child.stderr, r"^started in .*: 1 controller")
        code.write_text(BREAKS)
        await until(child.stderr, r"^started in .*: 1 controller")
        (tmp_path / "open").touch()
        await until(child.stderr, r"^controller namespace: source Door failed in .*keeper.py.*: LookupError: no door")
        code.write_text(MENDED)
        await until(child.stderr, r"^started in .*: 1 controller")
    finally:
        child.send_signal(signal.SIGINT)
        await child.communicate()

    assert child.returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_run_whose_controller_dies_ends_with_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "keeper.py").write_text(DIES)
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubewright.cli", "run", "--embedded", str(tmp_path / "keeper.py"),
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, told = await child.communicate()

    assert child.returncode == 1
    assert re.search(
        r"^controller namespace: setup failed in .*keeper.py, line 10: LookupError: no key$",
        told.decode().splitlines()[-1],
    )


@pytest.mark.timeout(300)
async def test_samples_that_are_not_there_are_missed(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(ONE_FILE)
    (tmp_path / "beside.py").write_text("word = 'first'\n")
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubewright.cli", "dev", "--samples", "alone.py", cwd=tmp_path,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stderr is not None
    try:
        await until(child.stderr, rf"^there are no samples: put manifests into {tmp_path}/config/samples$")
    finally:
        child.send_signal(signal.SIGINT)
        await child.communicate()

    assert child.returncode == 0
