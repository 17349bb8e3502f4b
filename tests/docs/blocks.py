"""The fenced blocks of the documentation: where they stand, what is to be done with them, and what they may show.

    ```console                   commands after `$ `, and under each the output it shows, if any is shown
    ```bash                      a script, run as a whole
    ```python                    run in order, in one namespace per page; `await` may stand at the top level
    ```python title="a/b.py"     a file of the reader's project: written, and used by the commands that follow
    ```yaml, ```toml, ```json    parsed; manifests of kinds that every cluster has are sent to one as a trial
    ```go, ```promql, ```text    only shown

In shown output `...` stands for anything within a line, and on a line of its own for any number of lines. How many
spaces there are between words does not matter. A remark before a block says what cannot be seen in it:

    <!-- not run: reason -->     nothing is done with it
    <!-- exits with 1 -->        its last command fails, and is to
    <!-- until Ctrl-C -->        its last command stays; it goes on when the output that is shown has been seen
    <!-- after Ctrl-C -->        what stays is stopped before this block

Pure: text in, blocks out. `follow` does what they say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ("Block", "Command", "blocks_of", "commands_of", "matches", "seen_in_order")

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[a-z]*)(?P<rest>.*)$")
_REMARK = re.compile(r"^ *<!-- (?P<text>.*?) -->$")
_TITLE = re.compile(r'title="([^"]+)"')
_HERE = re.compile(r"<<-? ?'?(?P<word>[A-Z]+)'?")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: str
    line: int
    language: str
    title: str
    text: str
    remarks: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def not_run(self) -> str:
        """Why nothing is done with it, if so."""
        return next((text.removeprefix("not run: ") for text in self.remarks if text.startswith("not run: ")), "")

    @property
    def exit_code(self) -> int:
        return next((int(text.removeprefix("exits with ")) for text in self.remarks if text.startswith("exits ")), 0)


@dataclass(frozen=True)
class Command:
    """One command of a console block and the output that is shown for it."""

    text: str
    shown: tuple[str, ...]


def blocks_of(file: Path, *, root: Path) -> list[Block]:
    """The blocks of a page, from its beginning to its end."""
    return list(_blocks(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8").splitlines()))


def _blocks(page: str, lines: list[str]) -> Iterator[Block]:
    remarks: list[str] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if remark := _REMARK.match(line):
            remarks.append(remark["text"])
        elif fence := _FENCE.match(line):
            start, text = number, []
            while number < len(lines) and lines[number].strip() != fence["fence"]:
                text.append(lines[number].removeprefix(fence["indent"]))
                number += 1
            number += 1
            title = _TITLE.search(fence["rest"])
            body = "".join(f"{one}\n" for one in text)
            yield Block(page, start, fence["language"], title[1] if title else "", body, tuple(remarks))
            remarks = []
        elif line.strip():
            remarks = []


def commands_of(block: Block) -> list[Command]:
    """The commands of a console block, with here-documents and lines that end in a backslash put together."""
    commands: list[Command] = []
    lines = iter(block.text.splitlines())
    for line in lines:
        if line.startswith("$ "):
            commands.append(Command(_whole(line.removeprefix("$ "), lines), ()))
        elif not commands:
            raise ValueError(f"{block.place}: a console block begins with `$ ` and a command, not with {line!r}")
        else:
            commands[-1] = Command(commands[-1].text, (*commands[-1].shown, line))
    return [Command(command.text, _without_last_blank(command.shown)) for command in commands]


def _whole(first: str, rest: Iterator[str]) -> str:
    text = first
    while text.endswith("\\"):
        text += "\n" + next(rest)
    if here := _HERE.search(text):
        for line in rest:
            text += "\n" + line
            if line == here["word"]:
                break
    return text


def _without_last_blank(shown: tuple[str, ...]) -> tuple[str, ...]:
    while shown and not shown[-1].strip():
        shown = shown[:-1]
    return shown


def matches(shown: str, real: str) -> bool:
    """Whether one line is what was shown for it."""
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in shown.split("..."))
    # A space beside the dots is a space that may be there or not: columns are as wide as their contents.
    return re.fullmatch(pattern.replace(r"\ .*", ".*").replace(r".*\ ", ".*"), " ".join(real.split())) is not None


def seen_in_order(shown: tuple[str, ...], real: list[str], *, gaps: bool = False) -> bool:
    """Whether the lines are those that were shown; with `gaps`, others may stand between them."""
    if not shown:
        return gaps or not real
    first, rest = shown[0], shown[1:]
    if first.strip() == "...":
        return any(seen_in_order(rest, real[at:], gaps=gaps) for at in range(len(real) + 1))
    for at, line in enumerate(real):
        if matches(first, line) and seen_in_order(rest, real[at + 1 :], gaps=gaps):
            return True
        if not gaps:
            return False
    return False
