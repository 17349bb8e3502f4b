"""The code on the pages is typed as strictly as the reader's own project is.

Covers: kubewright
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.docs.blocks import Block, blocks_of
from tests.docs.translations import ENGLISH_PAGES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *ENGLISH_PAGES]
TWICE = ROOT / "docs/howto/upgrade-crds.md"
"""Shows one file in two states, and has the package's name from another page."""


@pytest.mark.slow
def test_the_code_of_all_pages_passes_strict_type_checks(tmp_path: Path) -> None:
    files = [file for page in PAGES for file in written(page, tmp_path)]
    folders = {str(tmp_path / file.relative_to(tmp_path).parts[0]) for file in files}

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", *map(str, files)],
        cwd=ROOT,  # the same options and the same cache as those of `make lint`
        env={**os.environ, "MYPYPATH": os.pathsep.join(sorted(folders))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert len(files) > 20
    assert (done.stdout, done.returncode) == ("", 0), done.stdout + done.stderr


def written(page: Path, folder: Path) -> list[Path]:
    """The Python of a page as files: its titled blocks as they are called, and the others together as one module."""
    name = page.relative_to(ROOT).with_suffix("").as_posix().replace("/", "_").replace("-", "_").lower()
    found = [block for block in blocks_of(page, root=ROOT) if block.language == "python" and not block.not_run]
    files = {block.title: block.text for block in found if block.title and page != TWICE}
    if plain := [block for block in found if not block.title]:
        files[f"page_{name}.py"] = together(plain)
    # Every page may have its own conftest; to a type checker all of them are modules side by side.
    paths = {folder / name / title: text for title, text in files.items() if not title.startswith("tests/conftest")}
    for path, text in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [path for path in paths if path.suffix == ".py"]


def together(blocks: list[Block]) -> str:
    text = "\n".join(f"# {block.place}\n{block.text}" for block in blocks)
    try:
        compile(text, "page", "exec")
    except SyntaxError:  # it awaits at the top level
        return "async def page() -> None:\n" + textwrap.indent(text, "    ")
    return text
