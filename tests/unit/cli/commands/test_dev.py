"""Changed files are noticed, by whatever means the system has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import watchfiles

from kubewright.cli.commands import dev
from kubewright.cli.commands.dev import changed_files


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system with no more watches to give."""

    async def awatch(*folders: Path, **options: Any) -> AsyncIterator[Any]:
        raise RuntimeError("Too many open files (os error 24)")
        yield

    monkeypatch.setattr(watchfiles, "awatch", awatch)
    monkeypatch.setattr(dev, "_POLL_SECONDS", 0.01)


@pytest.mark.usefixtures("deaf")
async def test_files_are_looked_for_when_the_system_has_no_more_watches_to_give(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop, till, stop = tmp_path / "shop.py", tmp_path / "inner" / "till.py", asyncio.Event()
    till.parent.mkdir()
    for path in (shop, till):
        path.write_text("first")
    changes = changed_files(tmp_path, stop=stop, recursive=True)

    async def after(change: Any) -> set[str] | None:
        looking = asyncio.ensure_future(anext(changes, None))
        await asyncio.sleep(0)  # it has seen the files as they were
        change()
        return await looking

    assert await after(lambda: shop.write_text("other")) == {str(shop)}
    assert "so they are polled: Too many open files" in capsys.readouterr().err
    assert await after(lambda: shop.write_text("third, within the same second")) == {str(shop)}
    assert await after(till.unlink) == {str(till)}
    (tmp_path / "notes.txt").write_text("none of its business")
    assert await after(stop.set) is None


@pytest.mark.usefixtures("deaf")
async def test_beside_a_single_file_no_folder_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    changes = changed_files(tmp_path, stop=asyncio.Event(), recursive=False)
    looking = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)

    (tmp_path / "inner" / "till.py").write_text("")
    (tmp_path / "shop.py").write_text("")

    assert await looking == {str(tmp_path / "shop.py")}
