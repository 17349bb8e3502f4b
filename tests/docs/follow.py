"""Follow a page as a reader would: write its files, type its commands, run its Python, compare what is shown.

    async with Reader(folder, environ) as reader:
        for block in blocks_of(page, root=docs):
            await reader.follow(block)

`python -m tests.docs.follow README.md docs/tutorial.md` does so for pages, with the commands that are on the PATH.

A reader has one folder, a terminal in it, and a second terminal for the command that stays until Ctrl-C. What is
exported and where one has gone to stays from command to command. A command that holds `...` is one the reader pastes
from an earlier output: the first line that fits is taken.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Final, Self

from tests.docs.blocks import Block, Command, blocks_of, commands_of, matches, seen_in_order

from kubewright._base import yaml
from kubewright.testing.time_limits import slowness

__all__ = ("PageError", "Reader")

Trial = Callable[[dict[str, Any]], Awaitable[None]]

_PATIENCE: Final = 120.0
"""Seconds after which a command counts as stuck, on a quick machine."""
_STATE: Final = ".reader"
# What the shell knows when a command has ended is what the next one begins with.
_SHELL: Final = 'trap \'code=$?; env -0 >"$READER/env"; pwd >"$READER/pwd"; exit $code\' EXIT\n'


class PageError(AssertionError):
    """A command on the page does not do what the page says."""


class Reader:
    """Somebody who does what a page says."""

    def __init__(
        self,
        folder: Path,
        environ: Mapping[str, str],
        *,
        start: Path | None = None,
        patience: float = _PATIENCE,
        left_out: Collection[str] = (),
        trial: Trial | None = None,
    ) -> None:
        """`trial` sends a manifest to a cluster that keeps nothing of it; without it manifests are only parsed.

        The reader begins in `start`, else in a home folder of his own, and does not type commands that are `left_out`.
        """
        self._patience = patience
        self._left_out = left_out
        self._state = folder / _STATE
        self._state.mkdir()
        self._folder = folder / "home"
        self._folder.mkdir()
        self._environ = {**environ, "READER": str(self._state), "HOME": str(self._folder)}
        self._where = start or self._folder
        self._module = ModuleType("page")
        # Roles follow from what the code of an operator calls, so it has to be found.
        self._source = self._state / "page.py"
        self._module.__file__ = str(self._source)
        self._names: dict[str, Any] = vars(self._module)
        self._trial = trial
        self._outputs: list[str] = []
        self._background: _BackgroundCommand | None = None

    async def __aenter__(self) -> Self:
        sys.modules["page"] = self._module  # where the classes and functions of a page say they are from
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.modules.pop("page", None)
        await asyncio.to_thread(self._leave)

    async def follow(self, block: Block) -> None:
        """Do what a block says; `PageError` if that turns out otherwise than it shows."""
        if "after Ctrl-C" in block.remarks:
            await asyncio.to_thread(self._stop)
        if block.not_run:
            return
        if block.title:
            file = self._where / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            await asyncio.to_thread(self._type, block)
        elif block.language == "bash":
            await asyncio.to_thread(self._run, Command(block.text, ()), block.exit_code, block.place)
        elif block.language == "python":
            await self._evaluate(block)
        else:
            await self._parse(block)

    def go_to(self, folder: Path) -> None:
        """Change to another folder, as somebody does who opens another page; what is exported stays."""
        self._stop()
        self._where = folder

    # Commands

    def _type(self, block: Block) -> None:
        commands = commands_of(block)
        if "until Ctrl-C" in block.remarks:
            self._stop()
            stays = commands.pop()
            for command in commands:
                self._run(command, 0, block.place)
            self._background = _BackgroundCommand(self._pasted(stays.text), self._where, self._environ)
            if not self._background.wait_for(stays.shown):
                raise PageError(_difference(block.place, stays, self._background.lines))
            return
        for number, command in enumerate(commands, 1):
            if command.text.partition("#")[0].strip() in self._left_out:
                continue
            self._run(command, block.exit_code if number == len(commands) else 0, block.place)

    def _run(self, command: Command, code: int, place: str) -> None:
        done = subprocess.run(
            ["bash", "-c", _SHELL + self._pasted(command.text)],
            cwd=self._where,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self._patience * slowness(),
            check=False,
        )
        lines = done.stdout.splitlines()
        self._outputs += lines
        self._remember()
        if done.returncode != code:
            raise PageError(f"{place}: `{command.text}` ends with {done.returncode}, not {code}\n{done.stdout}")
        if command.shown and not seen_in_order(command.shown, lines):
            raise PageError(_difference(place, command, lines))

    def _remember(self) -> None:
        file = self._state / "env"
        if file.exists():
            pairs = (pair.partition("=") for pair in file.read_text().split("\0") if pair)
            self._environ = {name: value for name, _, value in pairs if name not in ("_", "SHLVL", "PWD", "OLDPWD")}
            self._where = Path((self._state / "pwd").read_text().strip())

    def _pasted(self, command: str) -> str:
        """The command with what the reader has to fill in."""
        if "..." not in command or "\n" in command:
            return command
        seen = [*self._outputs, *(self._background.lines if self._background is not None else ())]
        return next((line for line in reversed(seen) if matches(command, line)), command)

    def _stop(self) -> None:
        if self._background is not None:
            background, self._background = self._background, None
            background.interrupt()
            self._outputs += background.lines

    def _leave(self) -> None:
        """Stop what stays, and clusters in the background that a page which went wrong has not stopped itself."""
        self._stop()
        for cluster in (self._folder / ".local/state/kubewright/clusters").glob("*/kubeconfig"):
            self._run(Command(f"kubewright cluster down --name {cluster.parent.name}", ()), 0, "at the end")

    # Everything else

    async def _evaluate(self, block: Block) -> None:
        """Run Python; functions it defines that are named like tests are called, since that is what pytest would do."""
        before = set(self._names)
        with self._source.open("a", encoding="utf-8") as file:
            file.write(block.text)
        code = compile(
            "\n" * block.line + block.text,
            block.page,
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            dont_inherit=True,
        )
        outcome = eval(code, self._names)
        if inspect.isawaitable(outcome):
            await outcome
        for name in [name for name in self._names if name not in before and name.startswith("test_")]:
            outcome = self._names[name]()
            if inspect.isawaitable(outcome):
                await outcome

    async def _parse(self, block: Block) -> None:
        match block.language:
            case "yaml":
                for tree in yaml.load_all(block.text):
                    if isinstance(tree, dict) and {"apiVersion", "kind", "metadata"} <= tree.keys() and self._trial:
                        await self._trial(tree)
            case "toml":
                tomllib.loads(block.text)
            case "json":
                json.loads(block.text)
            case "text" | "promql" | "go":
                pass
            case other:
                raise PageError(f"{block.place}: nobody knows what to do with a block of {other or 'no language'}")


class _BackgroundCommand:
    """A command that stays until Ctrl-C, and what it has printed so far."""

    def __init__(self, command: str, where: Path, environ: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._more = threading.Condition()
        self._ended = False
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=where,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._thread = threading.Thread(target=self._read, name=command, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._more:
                self.lines.append(line.rstrip("\n"))
                self._more.notify_all()
        with self._more:
            self._ended = True
            self._more.notify_all()

    def wait_for(self, shown: tuple[str, ...]) -> bool:
        """Whether it prints what is shown, in this order, before it ends."""

        def seen() -> bool:
            return seen_in_order(shown, self.lines, gaps=True)

        with self._more:
            self._more.wait_for(lambda: seen() or self._ended, timeout=_PATIENCE * slowness())
            return seen()

    def interrupt(self) -> None:
        """Press Ctrl-C and wait for the end."""
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGINT)
        try:
            self._process.wait(_PATIENCE * slowness())
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise PageError(f"{self._process.args!r} does not end on Ctrl-C") from None
        finally:
            self._thread.join()
            if self._process.stdout is not None:
                self._process.stdout.close()


def _difference(place: str, command: Command, lines: list[str]) -> str:
    shown, real = ("".join(f"  {line}\n" for line in side) for side in (command.shown, lines))
    return f"{place}: `{command.text}` shows\n{shown}and prints\n{real}"


async def _follow_pages(pages: list[Path]) -> None:
    """Each page by a reader of its own, who says how far it went."""
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            async with Reader(Path(folder), {**os.environ, "NO_COLOR": "1", "COLUMNS": "160"}) as reader:
                for block in blocks_of(page, root=page.parent):
                    print(f"{page}:{block.line} {block.language} {block.title}{block.not_run}", flush=True)
                    await reader.follow(block)


if __name__ == "__main__":
    try:
        asyncio.run(_follow_pages([Path(page).absolute() for page in sys.argv[1:]]))
    except PageError as error:
        sys.exit(str(error))
