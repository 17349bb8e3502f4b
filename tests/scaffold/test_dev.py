"""`kubewright dev`: a change of the code is at work before its author is back at the other window."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest


async def until(stream: asyncio.StreamReader, pattern: str) -> re.Match[str]:
    """The first line that matches, within the time of the test."""
    told = []
    async for line in stream:
        told.append(line.decode())
        if found := re.search(pattern, told[-1]):
            return found
    raise AssertionError(f"no line matches {pattern!r}:\n{''.join(told)}")


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
    assert float(reloaded[1]) < 15


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
        sys.executable, "-m", "kubewright.cli", "dev", str(tmp_path / "alone.py"), cwd=tmp_path.parent,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stderr is not None
    try:
        await until(child.stderr, r"started: 1 controller$")
        await until(child.stderr, r"namespace default  .* RuntimeError: first  because: ")

        (tmp_path / "beside.py").write_text("word = (\n")
        await until(child.stderr, r"^beside.py changed; starting again")
        await until(child.stderr, r"alone cannot be imported: .*beside.py, line 1: SyntaxError")

        (tmp_path / "beside.py").write_text("word = 'second'\n")
        await until(child.stderr, r"namespace default  .* RuntimeError: second  because: ")
    finally:
        child.send_signal(signal.SIGINT)
        await child.communicate()

    assert child.returncode == 0


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
