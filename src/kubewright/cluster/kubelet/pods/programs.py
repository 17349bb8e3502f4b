"""What a container would do: how long it runs, what it prints and how it ends, read from its image and command.

Nothing is executed. The conventions, first match wins:

- the annotations of the pod (see `wishes`) overrule everything else;
- an image whose last part holds `fail` or `crash` ends at once with code 1;
- `sleep N`, `true`, `false`, `echo ...`, `exit N` and small shell scripts made of them do what they say; commands that
  are known to be quick (`cat`, `ls`, `date`, ...) succeed at once; `while` and `until` loops, `tail -f` and
  whatever else stands last run for ever;
- without a command, `hello-world` prints and ends, `busybox`, `alpine`, `debian` and `ubuntu` end at once, as a
  shell without input does, and `pause` waits for ever, which is all it is made for;
- any other init container, and any other container of a Job's pod, ends well after a moment; any other container runs
  for ever.

Pure; called by `pod_life`.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import final

import msgspec

__all__ = ("Program", "program_of", "sleep_seconds")

_SHELLS = frozenset({"sh", "bash", "ash", "dash"})
_QUICK = re.compile(
    r"\[|cat|ls|date|test|mkdir|touch|cp|mv|rm|chmod|chown|env|printenv|pwd|set|export|cd|wget|curl|nslookup|hostname|id"
    r"|whoami|uname|grep|sed|awk|head|wc|sort|tr|cut|tee|ln|nc|ping|kill|sync"
)
_BARE_SHELLS = frozenset({"busybox", "alpine", "debian", "ubuntu"})
_SEPARATORS = frozenset({";", "&&", "||", "|", "&", "\n"})
_KEYWORDS = frozenset({"if", "then", "else", "elif", "fi", "do", "done", "{", "}", "(", ")", "exec", "time", "!"})
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SLEEP = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)")
_VARIABLE = re.compile(r"\$(?:\((\w+)\)|\{(\w+)\}|(\w+))")


@final
class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A container's life in short."""

    output: tuple[str, ...] = ()
    """The lines it prints, all at its start."""
    seconds: float = math.inf
    """How long it runs by itself."""
    exit_code: int = 0
    """How it ends by itself."""
    obeys: bool = True
    """Whether it ends well when it is told to; `sleep` is killed in the end."""


def program_of(
    image: str, argv: Sequence[str], *, env: Mapping[str, str], short: bool = False, moment: float = 0.0
) -> Program:
    """The program of an image and a command line.

    `short` says that one nobody knows ends by itself after `moment` seconds, as an init container does.
    """
    name = re.split(r"[:@]", image.rpartition("/")[2])[0].lower()
    if "fail" in name or "crash" in name:
        return Program(output=(f"{name}: something is broken, giving up",), seconds=moment, exit_code=1)
    unknown = Program(seconds=moment) if short else Program()
    words = [_expanded(word, env) for word in argv]
    if not words:
        return _without_command(name, unknown, moment)
    script = _script(words)
    if script is not None:
        return _run_script(script, unknown, moment)
    return _run_commands([words], unknown, moment)


def _without_command(name: str, unknown: Program, moment: float) -> Program:
    if name == "hello-world":
        return Program(output=("Hello from Docker!",), seconds=moment)
    if name in _BARE_SHELLS:
        return Program(seconds=moment)
    return Program() if name == "pause" else unknown


def _expanded(word: str, env: Mapping[str, str]) -> str:
    """Variables with a plain value are put in; others stay as they are written."""
    return _VARIABLE.sub(lambda found: env.get(found[1] or found[2] or found[3] or "", found[0]), word)


def _script(words: Sequence[str]) -> str | None:
    """The text of `sh -c TEXT`, if it is that."""
    if words[0].rpartition("/")[2] not in _SHELLS:
        return None
    for position, word in enumerate(words[1:], start=1):
        if word.startswith("-") and word.endswith("c") and position + 1 < len(words):
            return words[position + 1]
    return None


def _run_script(script: str, unknown: Program, moment: float) -> Program:
    lexer = shlex.shlex(script.replace("\n", " ; "), posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:
        return Program(output=("sh: syntax error: unterminated quoted string",), seconds=moment, exit_code=2)
    return _run_commands(list(_commands(tokens)), unknown, moment)


def _commands(tokens: Sequence[str]) -> Iterator[list[str]]:
    command: list[str] = []
    for token in [*tokens, ";"]:
        if token in _SEPARATORS or set(token) <= {";", "&", "|"}:
            if command:
                yield command
            command = []
        elif command or token not in _KEYWORDS:
            command.append(token)


def _run_commands(commands: Sequence[Sequence[str]], unknown: Program, moment: float) -> Program:
    output: list[str] = []
    seconds, code, obeys = 0.0, 0, True
    for position, words in enumerate(commands):
        name, rest = words[0].rpartition("/")[2], words[1:]
        if name in ("while", "until") or (name == "tail" and "-f" in rest):
            body = [command for command in commands[position + 1 :] if command[0] == "echo"]
            output.extend(_echo(command[1:]) for command in body[:1])
            return Program(output=tuple(output), obeys=False)
        if name == "exit":
            code = int(rest[0]) & 255 if rest and rest[0].isdecimal() else code
            break
        if name == "sleep":
            seconds += sleep_seconds(rest)
            obeys, code = False, 0
        elif name in ("echo", "printf"):
            output.append(_echo(rest))
            code = 0
        elif name in ("true", "false", ":"):
            code = 1 if name == "false" else 0
        elif _QUICK.fullmatch(name) or name in ("for", "trap") or "=" in words[0]:
            code = 0
        elif position == len(commands) - 1:
            return Program(output=tuple(output), seconds=seconds + unknown.seconds)
    return Program(output=tuple(output), seconds=max(seconds, moment), exit_code=code, obeys=obeys)


def _echo(words: Sequence[str]) -> str:
    kept: list[str] = []
    for word in words:
        if word.startswith(">") or word.endswith(">") or word == "2>&1":
            break
        if word not in ("-n", "-e", "-en", "-ne"):
            kept.append(word)
    return " ".join(kept).rstrip("\n")


def sleep_seconds(words: Sequence[str]) -> float:
    """How long `sleep` with these arguments takes."""
    total = 0.0
    for word in words:
        if word in ("infinity", "inf"):
            return math.inf
        found = _SLEEP.fullmatch(word)
        total += float(found[1]) * _UNITS[found[2]] if found else 0.0
    return total
