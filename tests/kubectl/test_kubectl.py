"""The same kubectl commands print the same on the embedded control plane and on the real one.

`normalized_output` masks what differs from run to run. A step that reads a state which controllers are still working on
runs again until both planes print the same; every other step runs once.
"""

from __future__ import annotations

import asyncio
import difflib
from pathlib import Path

import pytest
from tests.kubectl.normalized_output import Output, normalized
from tests.kubectl.plane import Plane
from tests.kubectl.script import CASES
from tests.kubectl.steps import Case, Step

from kubewright.testing import time_limit
from kubewright.testing.time_limits import slowness

# The longest case takes half a minute where nothing else runs; how busy the machine is says nothing about kubectl.
pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.xdist_group("kubectl"), pytest.mark.timeout(600)]

_PATIENCE = 45.0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_kubectl_says_the_same_on_both(case: Case, planes: tuple[Plane, Plane], tmp_path: Path) -> None:
    folders = [_prepared(tmp_path / plane.name, case) for plane in planes]
    watching: list[tuple[Step, list[tuple[asyncio.subprocess.Process, str]]]] = []
    complaints: list[str] = []

    for step in case.all_steps:
        if step.watches:
            started = await asyncio.gather(
                *(plane.start(step, case, folder) for plane, folder in zip(planes, folders, strict=True))
            )
            # A watch begins where the list ends that came first: once that is shown, nothing is missed.
            heads = [await _line(child) for child in started]
            watching.append((step, list(zip(started, heads, strict=True))))
            continue
        complaints.extend(await _compared(step, case, planes, folders))
    for step, children in watching:
        complaints.extend(
            _difference(step, *[normalized(await _stopped(child, head, step.until)) for child, head in children])
        )

    if complaints:
        pytest.fail("\n\n".join(["", *complaints]), pytrace=False)


def test_every_exception_is_explained() -> None:
    explained = (Path(__file__).parents[2] / "docs" / "embedded.md").read_text()
    exceptions = {step.exception for case in CASES for step in case.steps if step.exception}

    assert exceptions
    assert {name for name in exceptions if name not in explained} == set()


def _prepared(folder: Path, case: Case) -> Path:
    for name, text in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(0o700)
    folder.mkdir(exist_ok=True)
    return folder


async def _compared(step: Step, case: Case, planes: tuple[Plane, Plane], folders: list[Path]) -> list[str]:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE * slowness()
    while True:
        outputs = await asyncio.gather(
            *(plane.run(step, case, folder) for plane, folder in zip(planes, folders, strict=True))
        )
        real, embedded = (normalized(one, hide=step.hide, unordered=step.unordered) for one in outputs)
        complaints = _difference(step, real, embedded)
        if not complaints and (step.until not in real[1] + real[2] or step.fails != bool(real[0])):
            told = "\n".join(outputs[0][1:])
            complaints = [f"$ kubectl {step.command}\nis not what was expected: exit code {real[0]}\n{told}"]
        if not complaints or not step.settles or loop.time() > deadline:
            return complaints


def _difference(step: Step, real: Output, embedded: Output) -> list[str]:
    if real == embedded or (step.exception and real[0] == embedded[0]):
        return []
    shown = [
        [f"exit code {code}", *out.splitlines(), "--- complaints", *err.splitlines()]
        for code, out, err in (real, embedded)
    ]
    lines = difflib.unified_diff(shown[0], shown[1], "real", "embedded", lineterm="", n=2)
    return [f"$ kubectl {step.command}\n" + "\n".join(lines)]


async def _stopped(child: asyncio.subprocess.Process, head: str, until: str) -> Output:
    """What a watching command printed, up to the line that it waits for."""
    lines = [head]
    try:
        async with time_limit(_PATIENCE):
            while line := await _line(child):
                lines.append(line)
                if until in line:
                    break
    except TimeoutError:
        lines.append(f"never printed {until!r}")
    child.terminate()
    _, err = await child.communicate()
    return 0, "".join(lines), err.decode()


async def _line(child: asyncio.subprocess.Process) -> str:
    assert child.stdout is not None
    return (await child.stdout.readline()).decode()
