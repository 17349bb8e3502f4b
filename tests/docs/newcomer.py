"""A newcomer: a clean clone, an empty home folder, no virtual environment, and only what the pages say.

    python -m tests.docs.newcomer [--all]

Follows README.md from the first command to the last, then the tutorial in the same terminal, then the tutorials of
other frameworks, each in its folder of the clone. `make test` is left out unless `--all` is given: it takes a quarter
of an hour. The rest takes about three minutes on two cores, most of it the installation. Not a test itself, since it
installs everything anew.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.docs.blocks import blocks_of
from tests.docs.follow import PageError, Reader

_ROOT: Final = Path(__file__).parents[2]
_PAGES: Final = ("README.md", "docs/tutorial.md")
_TUTORIALS: Final = "examples/tutorials"
"""The folder whose READMEs begin in their own folders, and not where the last page ended."""
_PATIENCE: Final = 3600.0
_KEPT: Final = ("LANG", "TMPDIR", "SSL_CERT_FILE", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "KUBEBUILDER_ASSETS")
"""Of the machine: where packages and binaries come from is not the page's business."""


async def follow(folder: Path, clone: Path, *, left_out: tuple[str, ...]) -> None:
    """Do everything the pages of the clone say, and print how far it went."""
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = [place for place in os.environ["PATH"].split(os.pathsep) if ".venv" not in place]
    environ |= {"PATH": os.pathsep.join(path), "NO_COLOR": "1", "COLUMNS": "160"}
    async with Reader(folder, environ, start=clone, patience=_PATIENCE, left_out=left_out) as reader:
        for page in _PAGES:
            await _follow_page(reader, clone, page)
        for file in sorted((clone / _TUTORIALS).glob("*/README.md")):
            reader.go_to(file.parent)
            await _follow_page(reader, clone, file.relative_to(clone).as_posix())


async def _follow_page(reader: Reader, clone: Path, page: str) -> None:
    for block in blocks_of(clone / page, root=clone):
        print(f"{page}:{block.line} {block.language} {block.title}{block.not_run}", flush=True)
        await reader.follow(block)


def main() -> None:
    left_out = () if "--all" in sys.argv[1:] else ("make test",)
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        clone = Path(folder, "kubewright")
        subprocess.run(["git", "clone", "--quiet", str(_ROOT), str(clone)], check=True)
        try:
            asyncio.run(follow(Path(folder), clone, left_out=left_out))
        except PageError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
