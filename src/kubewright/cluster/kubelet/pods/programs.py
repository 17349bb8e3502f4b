"""The simulated program of a container: how long it runs, its output and its exit code, from its image and command.

Nothing is executed. The first rule that applies wins:

- the annotations of the pod (see `overrides`);
- an image whose last path segment contains `fail` or `crash` exits at once with code 1;
- `sleep N`, `true`, `false`, `echo ...`, `exit N` and small shell scripts of them are simulated; known quick commands
  (`cat`, `ls`, `date`, ...) succeed at once; `while` and `until` loops, `tail -f` and any other last command run for
  ever;
- arguments without a command are those of the image's own program, which is unknown: only words that every image runs
  in the same way (`sh -c`, `sleep`, `true`, ...) mean what they say; a bare shell image has no program of its own, and
  its arguments are a command;
- without both, `hello-world` prints and exits, `busybox`, `alpine`, `debian` and `ubuntu` exit at once, as a
  shell without input does, and `pause` runs for ever;
- any other init container, and any other container of a Job's pod, succeeds shortly; any other container runs for
  ever.

Pure; called by `lifecycle`.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import final

import msgspec

from kubewright.cluster.kubelet.pods.expansion import ArgumentListTooLong, bounded_substitution, expand_all

__all__ = ("Program", "simulated_program", "sleep_seconds")

_SHELLS = frozenset({"sh", "bash", "ash", "dash"})
_QUICK_COMMANDS = re.compile(
    r"\[|cat|ls|date|test|mkdir|touch|cp|mv|rm|chmod|chown|env|printenv|pwd|set|export|cd|wget|curl|nslookup|hostname|id"
    r"|whoami|uname|grep|sed|awk|head|wc|sort|tr|cut|tee|ln|nc|ping|kill|sync"
)
_BARE_SHELLS = frozenset({"busybox", "alpine", "debian", "ubuntu"})
_SEPARATORS = frozenset({";", "&&", "||", "|", "&", "\n"})
_KEYWORDS = frozenset({"if", "then", "else", "elif", "fi", "do", "done", "{", "}", "(", ")", "exec", "time", "!"})
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SHOWN = 100
_SLEEP = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\((\w+)\)|\{(\w+)\}|(\w+))")


@final
class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a container."""

    output: tuple[str, ...] = ()
    """The lines it prints, all at its start."""
    seconds: float = math.inf
    """How long it runs before it exits by itself."""
    exit_code: int = 0
    """The exit code if it exits by itself."""
    handles_sigterm: bool = True
    """Whether it exits with 0 on SIGTERM; `sleep` as process 1 ignores it and is killed."""


def simulated_program(
    image: str,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    has_command: bool = True,
    short_lived: bool = False,
    short_delay: float = 0.0,
) -> Program:
    """The program of an image and a command line, which without `has_command` has arguments alone.

    With `short_lived` an unknown program exits after `short_delay` seconds, as an init container does.
    """
    name = re.split(r"[:@]", image.rpartition("/")[2])[0].lower()
    if "fail" in name or "crash" in name:
        return Program(output=(f"{name}: something is broken, giving up",), seconds=short_delay, exit_code=1)
    unknown = Program(seconds=short_delay) if short_lived else Program()
    try:
        words = expand_all(argv, lambda word: _expand(word, env))
    except ArgumentListTooLong as error:
        return Program(output=(f"exec {argv[0][:_SHOWN]}: {error}",), seconds=short_delay, exit_code=128)
    if not words:
        return _default_program(name, unknown, short_delay)
    script = _script(words)
    if script is not None:
        return _run_script(script, unknown, short_delay)
    command = _without_assignments(words[1:]) or words if words[0].rpartition("/")[2] == "env" else words
    is_own_program = not has_command and name not in _BARE_SHELLS
    return _run_commands([command], unknown, short_delay, quick=not is_own_program)


def _default_program(name: str, unknown: Program, short_delay: float) -> Program:
    if name == "hello-world":
        return Program(output=("Hello from Docker!",), seconds=short_delay)
    if name in _BARE_SHELLS:
        return Program(seconds=short_delay)
    return Program() if name == "pause" else unknown


def _expand(word: str, env: Mapping[str, str]) -> str:
    """Substitute variables of `env`; keep references to others."""
    return bounded_substitution(
        _VARIABLE, lambda found: env.get(found[1] or found[2] or found[3] or "", found[0]), word
    )


def _script(words: Sequence[str]) -> str | None:
    """The script of `sh -c SCRIPT`; None for another command."""
    if words[0].rpartition("/")[2] not in _SHELLS:
        return None
    for position, word in enumerate(words[1:], start=1):
        if word.startswith("-") and word.endswith("c") and position + 1 < len(words):
            return words[position + 1]
    return None


def _run_script(script: str, unknown: Program, short_delay: float) -> Program:
    lexer = shlex.shlex(script.replace("\n", " ; "), posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:
        return Program(output=("sh: syntax error: unterminated quoted string",), seconds=short_delay, exit_code=2)
    commands = [_without_assignments(command) or [":"] for command in _commands(tokens)]
    return _run_commands(commands, unknown, short_delay)


def _without_assignments(words: Sequence[str]) -> Sequence[str]:
    """A command without the variables that are set for it; empty where nothing but variables is set."""
    first = next((at for at, word in enumerate(words) if not _ASSIGNMENT.fullmatch(word)), len(words))
    return words[first:]


def _commands(tokens: Sequence[str]) -> Iterator[list[str]]:
    command: list[str] = []
    for token in [*tokens, ";"]:
        if token in _SEPARATORS or set(token) <= {";", "&", "|"}:
            if command:
                yield command
            command = []
        elif command or token not in _KEYWORDS:
            command.append(token)


def _run_commands(
    commands: Sequence[Sequence[str]], unknown: Program, short_delay: float, *, quick: bool = True
) -> Program:
    """Run them in turn; `quick` says that the words of quick commands mean these commands."""
    output: list[str] = []
    seconds, code, handles_sigterm = 0.0, 0, True
    for position, words in enumerate(commands):
        name, rest = words[0].rpartition("/")[2], words[1:]
        if name in ("while", "until") or (name == "tail" and "-f" in rest):
            body = [command for command in commands[position + 1 :] if command[0] == "echo"]
            output.extend(_echo(command[1:]) for command in body[:1])
            return Program(output=tuple(output), handles_sigterm=False)
        if name == "exit":
            code = int(rest[0]) & 255 if rest and rest[0].isdecimal() else code
            break
        if name == "sleep":
            seconds += sleep_seconds(rest)
            handles_sigterm, code = False, 0
        elif name in ("echo", "printf"):
            output.append(_echo(rest))
            code = 0
        elif name in ("true", "false", ":"):
            code = 1 if name == "false" else 0
        elif quick and (_QUICK_COMMANDS.fullmatch(name) or name in ("for", "trap")):
            code = 0
        elif position == len(commands) - 1:
            return Program(output=tuple(output), seconds=seconds + unknown.seconds)
    return Program(
        output=tuple(output), seconds=max(seconds, short_delay), exit_code=code, handles_sigterm=handles_sigterm
    )


def _echo(words: Sequence[str]) -> str:
    words_out: list[str] = []
    for word in words:
        if word.startswith(">") or word.endswith(">") or word == "2>&1":
            break
        if word not in ("-n", "-e", "-en", "-ne"):
            words_out.append(word)
    return " ".join(words_out).rstrip("\n")


def sleep_seconds(words: Sequence[str]) -> float:
    """The duration of `sleep` with these arguments."""
    total = 0.0
    for word in words:
        if word in ("infinity", "inf"):
            return math.inf
        found = _SLEEP.fullmatch(word)
        total += float(found[1]) * _UNITS[found[2]] if found else 0.0
    return total
