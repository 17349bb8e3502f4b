"""The tutorials: what each README shows is so, its tests pass, and they pass on a real control plane, too.

A reader begins in a copy of the folder, and types what the README says. So the tests of a tutorial are run by the
command that the README gives for it.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.docs.blocks import blocks_of
from tests.docs.follow import PageError, Reader
from tests.examples.conftest import FOLDER

from kubewright.cluster.binaries.finder import Binaries, find_installed
from kubewright.errors import ClusterError

TUTORIALS = sorted(file.parent for file in (FOLDER / "tutorials").glob("*/README.md"))
# Each is half a minute of work: a worker of its own for each.
EACH = [pytest.param(folder, id=folder.name, marks=pytest.mark.xdist_group(folder.name)) for folder in TUTORIALS]
VENV = Path(sys.executable).parent


def test_the_list_has_all_of_them() -> None:
    text = (FOLDER / "tutorials/README.md").read_text()
    listed = re.findall(r"^\| \[\w+\]\((\w+)/README\.md\) \|", text, re.MULTILINE)

    assert sorted(listed) == [folder.name for folder in TUTORIALS]
    assert len(listed) == 4


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    """What a reader's terminal knows: Kubewright, kubectl, and nothing of the machine's own."""
    tools = tmp_path / "tools"
    tools.mkdir()
    found = shutil.which("kubectl")
    if found is None:
        try:
            found = str(find_installed().kubectl)
        except ClusterError:
            pytest.skip("there is no kubectl; `make binaries` gets one")
    (tools / "kubectl").symlink_to(found)
    path = os.pathsep.join((str(tools), str(VENV), os.environ["PATH"]))
    kept = {name: value for name in ("LANG", "TMPDIR") if (value := os.environ.get(name))}
    return {**kept, "PATH": path, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "160"}


@pytest.mark.slow
@pytest.mark.timeout(600)  # as a page of the documentation: half a minute of work, on a machine that may be busy
@pytest.mark.parametrize("folder", EACH)
async def test_what_a_readme_shows_is_so(folder: Path, tmp_path: Path, environ: Mapping[str, str]) -> None:
    start = copy_of(folder, tmp_path)
    wrong = ""
    async with Reader(tmp_path, environ, start=start) as reader:
        try:
            for block in blocks_of(folder / "README.md", root=FOLDER):
                await reader.follow(block)
        except PageError as error:
            wrong = str(error)
    if wrong:
        pytest.fail(wrong, pytrace=False)


@pytest.mark.real
@pytest.mark.timeout(600)
@pytest.mark.parametrize("folder", EACH)
async def test_its_tests_pass_on_a_real_control_plane(folder: Path, tmp_path: Path, real_binaries: Binaries) -> None:
    tests = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pytest", cwd=copy_of(folder, tmp_path), env={**os.environ, "REAL": "1"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await tests.communicate()

    assert tests.returncode == 0, output.decode()


def copy_of(folder: Path, tmp_path: Path) -> Path:
    """A place of the reader's own: what commands write does not land in the repository."""
    return Path(shutil.copytree(folder, tmp_path / folder.name, ignore=shutil.ignore_patterns(".*", "__pycache__")))
