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
        await until(child.stderr, r"pods_operator.controllers.podset cannot be imported: SyntaxError")

        code.write_text(text.replace("ctx.condition(", 'raise RuntimeError("new code")\n    ctx.condition('))
        reloaded = await until(child.stderr, r"started in ([0-9.]+) s: 3 controllers, 5 webhooks, watches kept warm: 1")
        await until(child.stderr, r"podset default/podset-sample  .* RuntimeError: new code  because: ")
    finally:
        child.send_signal(signal.SIGINT)
        await child.communicate()

    assert child.returncode == 0
    assert float(reloaded[1]) < 5  # a fifth of a second on an idle machine
