"""Every page of the documentation does what it says.

Covers: kubewright
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.docs.blocks import Block, Command, blocks_of, commands_of, matches, seen_in_order
from tests.docs.follow import PageError, Reader, Trial

from kubewright import Dynamic
from kubewright.api.codec import from_tree
from kubewright.cluster.binaries.finder import find_installed
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.errors import ClusterError, NotFound

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*.md"))
VENV = Path(sys.executable).parent

NOT_RUN = {
    "howto/from-kopf.md": {"it needs kopf and a cluster of its own; kopf itself is tested in tests/clients"},
    "request-costs.md": {"it sends requests for the better part of an hour"},
    "tutorial.md": {
        "the tests have Kubewright installed already",
        "there is no container tool and no registry in a test",
    },
}
"""Which blocks no test runs, and why; a new one has to be let in here."""


def blocks(page: str) -> list[Block]:
    return blocks_of(DOCS / page, root=DOCS)


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    """What a reader's terminal knows: the project's virtual environment, kubectl, and nothing of the machine's own."""
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
    kept = {name: value for name in ("LANG", "TMPDIR", "PYTHONPATH") if (value := os.environ.get(name))}
    return {**kept, "PATH": path, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "160"}


@pytest.fixture(scope="module")
async def trial() -> AsyncIterator[Trial]:
    """Sends a manifest to a cluster as a trial; a kind that it does not have is taken as it is."""
    async with EmbeddedCluster(pods=False, controllers=False) as cluster:

        async def send(tree: dict[str, Any]) -> None:
            obj = from_tree(Dynamic(tree["apiVersion"], tree["kind"]), tree)
            obj.metadata.namespace = obj.metadata.namespace and "default"
            try:
                await cluster.client.apply(obj, field_manager="reader", dry_run=True)
            except NotFound as error:
                if "has no kind" not in str(error):
                    raise

        yield send


@pytest.mark.timeout(600)  # the tutorial is half a minute of work, and machines that test may be busy
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
async def test_what_a_page_shows_is_so(
    page: str, tmp_path: Path, environ: Mapping[str, str], trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    wrong = ""
    async with Reader(tmp_path, environ, trial=trial) as reader:
        try:
            for block in blocks(page):
                await reader.follow(block)
        except PageError as error:
            wrong = str(error)
    if wrong:
        pytest.fail(wrong, pytrace=False)


def test_only_blocks_that_are_known_are_not_run() -> None:
    left_out: dict[str, set[str]] = {}
    for page in PAGES:
        for block in blocks(page):
            if block.not_run:
                left_out.setdefault(page, set()).add(block.not_run)

    assert left_out == NOT_RUN


@pytest.mark.parametrize("page", PAGES)
def test_no_line_of_code_is_longer_than_the_site_shows_on_a_screen_of_1440_pixels(page: str) -> None:
    lines = [line for block in blocks(page) for line in block.text.splitlines()]

    assert [line for line in lines if len(line) > 116] == [], "docs/assets/site.css has the width and the size"


def test_dots_stand_for_anything_within_a_line_and_for_lines() -> None:
    assert matches("ready at https://127.0.0.1:... after ... s", "ready at https://127.0.0.1:4711 after 0.6 s")
    assert matches("NAME  READY   AGE", "NAME   READY  AGE")
    assert not matches("ready", "ready at last")
    assert seen_in_order(("a", "...", "d"), ["a", "b", "c", "d"])
    assert seen_in_order(("a", "..."), ["a"])
    assert not seen_in_order(("a", "d"), ["a", "b", "d"])
    assert seen_in_order(("a", "d"), ["0", "a", "b", "d"], gaps=True)


def test_commands_are_told_from_what_they_print() -> None:
    text = "$ cat <<'EOF'\none\n$ two\nEOF\none\n$ two\n\n$ a \\\n  b\n"
    block = Block("page.md", 1, "console", "", text, ())

    assert commands_of(block) == [
        Command("cat <<'EOF'\none\n$ two\nEOF", ("one",)),
        Command("two", ()),
        Command("a \\\n  b", ()),
    ]


@pytest.mark.parametrize(
    ("language", "text"),
    [("console", "$ echo one\ntwo\n"), ("console", "$ false\n"), ("bash", "exit 3\n"), ("python", "assert 1 == 2\n")],
)
async def test_a_page_that_is_wrong_is_noticed(
    language: str, text: str, tmp_path: Path, environ: Mapping[str, str]
) -> None:
    async with Reader(tmp_path, environ) as reader:
        with pytest.raises(AssertionError):
            await reader.follow(Block("page.md", 1, language, "", text, ()))


async def test_what_a_command_that_stays_prints_can_be_pasted(tmp_path: Path, environ: Mapping[str, str]) -> None:
    stays = "$ bash -c 'echo export COLOR=red; exec tail -f /dev/null'\nexport COLOR=...\n"
    async with Reader(tmp_path, environ) as reader:
        await reader.follow(Block("page.md", 1, "console", "", stays, ("until Ctrl-C",)))
        await reader.follow(Block("page.md", 5, "console", "", "$ mkdir shop\n$ cd shop\n$ export COLOR=...\n", ()))
        await reader.follow(Block("page.md", 9, "yaml", "paint.yaml", "color: red\n", ("after Ctrl-C",)))
        await reader.follow(Block("page.md", 13, "console", "", "$ grep $COLOR paint.yaml\ncolor: red\n", ()))

    assert (tmp_path / "home/shop/paint.yaml").exists()
