"""A shell for simulated containers: runs a command line, a script or interactive input and returns an exit code.

It supports quotes, variables, `;`, `&&`, `||`, pipes, redirections, `cd`, `export` and `exit`; loops, conditions and
functions are syntax errors. A missing program is an error of the container runtime or the shell (126, 127). The
programs are in `commands`. Called by `streaming_handlers`.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from typing import Final, final

import msgspec

from kubewright._base.clock import Clock
from kubewright.cluster.kubelet.pods.expansion import (
    ARGUMENTS_LIMIT,
    ArgumentListTooLong,
    bounded_substitution,
)
from kubewright.cluster.kubelet.sandbox.commands import COMMANDS, Process, Read, Write
from kubewright.cluster.kubelet.sandbox.files import absolute
from kubewright.cluster.kubelet.sandbox.sandboxes import ContainerSandbox
from kubewright.cluster.kubelet.streaming.command_streams import CommandStreams

__all__ = ("run",)

_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_KEYWORDS: Final = frozenset(
    {"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "{", "("}
)
_FOLDERS: Final = ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin")
_TOKEN: Final = re.compile(
    r"""[ \t]+|(?P<comment>\#[^\n]*)|(?P<redirect>\d?>&\d|\d?>>|\d?>|<)|(?P<operator>&&|\|\||[;|&\n()])"""
    r"""|(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\;|&<>()])+)""",
    re.DOTALL,
)
_PIECE: Final = re.compile(
    r"""'(?P<hard>[^']*)'|"(?P<soft>(?:\\.|[^"\\])*)"|\\(?P<one>.)|(?P<bare>[^'"\\]+)""", re.DOTALL
)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+)|(\?)|(\$))")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PROMPT: Final = b"/ # "
_MAX_BUFFER: Final = 32 * 1024 * 1024
"""Bytes in a pipe, or of one redirection."""
_MAX_LINE: Final = 1024 * 1024
_TURN: Final = 100
"""Commands after which other tasks of the event loop run."""


class _ShellSyntaxError(Exception):
    """The script has a syntax error."""


class _OutOfMemory(Exception):
    """A command wrote more into a pipe or a file than the container may hold."""

    def __init__(self) -> None:
        super().__init__("Killed")


class _Exit(Exception):
    """The script called `exit`; the exit code is in the shell."""


@final
class _SimpleCommand(msgspec.Struct):
    """One simple command of a script, before expansion."""

    words: list[str] = msgspec.field(default_factory=list)
    redirects: list[tuple[str, str]] = msgspec.field(default_factory=list)
    then: str = ";"
    """The operator after it: `;`, `&&`, `||` or `|`."""


async def run(argv: Sequence[str], sandbox: ContainerSandbox, streams: CommandStreams, clock: Clock) -> int:
    """Run a command line as a container runtime does; return the exit code."""
    shell = _Shell(sandbox, clock)
    name = _program_name(argv[0])
    if name in _SHELLS:
        return await shell.main(argv, streams)
    if name == "env" and len(argv) > 1:
        words = shell.assign(list(argv[1:]))
        argv, name = words or ["env"], _program_name(words[0]) if words else "env"
    if name not in COMMANDS:
        code, reason = _exec_error(argv[0], sandbox)
        text = f"OCI runtime exec failed: exec failed: unable to start container process: exec: {reason}: unknown\n"
        await streams.write_error(text.encode())
        return code
    process = shell.process(name, list(argv[1:]), streams.read, streams.write, streams.write_error)
    return await COMMANDS[name](process)


def _program_name(word: str) -> str:
    """The name of a program, given by name or by a path in a folder of programs; empty for other paths."""
    folder, slash, name = word.rpartition("/")
    return name if not slash or folder in _FOLDERS else ""


def _exec_error(word: str, sandbox: ContainerSandbox) -> tuple[int, str]:
    if "/" not in word:
        return 127, f'"{word}": executable file not found in $PATH'
    path = absolute(sandbox.folder, word)
    if sandbox.files.is_file(path) or sandbox.files.is_folder(path):
        return 126, f'"{word}": permission denied'
    return 127, f'"{word}": stat {word}: no such file or directory'


@final
class _Shell:
    """The state of one shell."""

    def __init__(self, sandbox: ContainerSandbox, clock: Clock) -> None:
        self.environment = dict(sandbox.environment)
        self._size = sum(len(name) + len(value) for name, value in self.environment.items())
        self.folder = sandbox.folder
        self._sandbox = sandbox
        self._clock = clock
        self._code = 0

    def process(self, name: str, args: list[str], read: Read, write: Write, write_error: Write) -> Process:
        return Process(name, args, self._sandbox, self.environment, self.folder, read, write, write_error, self._clock)

    async def main(self, argv: Sequence[str], streams: CommandStreams) -> int:
        """Run `sh -c SCRIPT`, or an interactive shell."""
        for position, word in enumerate(argv[1:], start=1):
            if word.startswith("-") and word.endswith("c"):
                if position + 1 >= len(argv):
                    await streams.write_error(b"sh: -c requires an argument\n")
                    return 2
                return await self._run_script(argv[position + 1], streams)
        with contextlib.suppress(_Exit):
            await self._run_interactive(streams)
        return self._code

    async def _run_script(self, text: str, streams: CommandStreams) -> int:
        with contextlib.suppress(_Exit):
            await self._run_lines(text, streams)
        return self._code

    async def _run_lines(self, text: str, streams: CommandStreams) -> None:
        try:
            commands = _parse(text)
        except _ShellSyntaxError as error:
            await streams.write_error(f"sh: {error}\n".encode())
            self._code = 2
            return
        await self._run_commands(commands, streams)

    async def _run_interactive(self, streams: CommandStreams) -> None:
        tty = streams.options.tty
        line = bytearray()
        if tty:
            await streams.write(_PROMPT)
        while data := await streams.read():
            for byte in data:
                if byte == 4 and not line and tty:  # Ctrl-D
                    return
                if byte == 3 and tty:  # Ctrl-C
                    line.clear()
                    await streams.write(b"^C\n" + _PROMPT)
                elif byte in (10, 13):
                    if tty:
                        await streams.write(b"\n")
                    await self._run_lines(line.decode(errors="surrogateescape"), streams)
                    line.clear()
                    if tty:
                        await streams.write(_PROMPT)
                elif byte in (8, 127) and tty:
                    if line:
                        del line[-1:]
                        await streams.write(b"\b \b")
                elif len(line) < _MAX_LINE:
                    line.append(byte)
                    if tty:
                        await streams.write(bytes((byte,)))
        if line:
            await self._run_lines(line.decode(errors="surrogateescape"), streams)

    async def _run_commands(self, commands: list[_SimpleCommand], streams: CommandStreams) -> None:
        read: Read = streams.read
        before = ";"
        for number, command in enumerate(commands):
            if number % _TURN == _TURN - 1:
                await asyncio.sleep(0)
            skipped = (before == "&&" and self._code != 0) or (before == "||" and self._code == 0)
            if not skipped:
                piped = bytearray()
                write = _write_to(piped) if command.then == "|" else streams.write
                self._code = await self._run_simple(command, read, write, streams.write_error)
                read = _read_from(bytes(piped)) if command.then == "|" else streams.read
            if not (skipped and command.then == "|"):  # a pipe is skipped as a whole
                before = command.then

    async def _run_simple(self, command: _SimpleCommand, read: Read, write: Write, write_error: Write) -> int:
        try:
            words = [self._expand(word) for word in command.words]
            self._check_size(words)
        except ArgumentListTooLong as error:
            await write_error(f"sh: {error}\n".encode())
            return 126
        words = [word for word, raw in zip(words, command.words, strict=True) if word or raw[:1] in "'\""]
        words = self.assign(words)
        errors = write_error
        written: dict[str, bytearray] = {}
        for operator, target in command.redirects:
            try:
                target = self._expand(target)
            except ArgumentListTooLong as error:
                await write_error(f"sh: {error}\n".encode())
                return 126
            if operator == "<":
                try:
                    read = _read_from(self._sandbox.files.read(absolute(self.folder, target)))
                except OSError as error:
                    await write_error(f"sh: can't open {target}: {error}\n".encode())
                    return 1
            elif operator in ("2>&1", ">&1"):
                write_error = write
            elif operator in (">&2", "1>&2"):
                write = write_error
            else:
                sink = self._opened(operator, target, written)
                if operator.startswith("2"):
                    write_error = _write_to(sink)
                else:
                    write = _write_to(sink)
        try:
            code = await self._run_program(words, read, write, write_error) if words else 0
        except _OutOfMemory as error:
            await errors(f"{error}\n".encode())
            return 137
        for path, content in written.items():
            if path != "/dev/null":
                try:
                    self._sandbox.files.write(path, bytes(content))
                except OSError as error:
                    await write_error(f"sh: can't create {path}: {error}\n".encode())
                    return 1
        return code

    def _opened(self, operator: str, target: str, written: dict[str, bytearray]) -> bytearray:
        path = absolute(self.folder, target)
        if path in written:
            return written[path]
        sink = bytearray()
        if operator.endswith(">>") and self._sandbox.files.is_file(path):
            sink += self._sandbox.files.read(path)
        return written.setdefault(path, sink)

    async def _run_program(self, words: list[str], read: Read, write: Write, write_error: Write) -> int:
        name, args = words[0], words[1:]
        if name == "exit":
            self._code = int(args[0]) & 255 if args and args[0].isdecimal() else self._code
            raise _Exit
        if name == "cd":
            path = absolute(self.folder, args[0] if args else self.environment.get("HOME", "/"))
            if not self._sandbox.files.is_folder(path):
                await write_error(f"sh: cd: can't cd to {args[0]}: No such file or directory\n".encode())
                return 2
            self.folder = path
            return 0
        if name == "export":
            for word in args:
                self.assign([word])
            return 0
        if name in (":", "set", "trap", "umask", "wait"):
            return 0
        if name == "exec" and args:
            self._code = await self._run_program(args, read, write, write_error)
            raise _Exit
        program = _program_name(name)
        if program not in COMMANDS:
            code, _ = _exec_error(name, self._sandbox)
            reason = "Permission denied" if code == 126 else "not found"
            await write_error(f"sh: {name}: {reason}\n".encode())
            return code
        return await COMMANDS[program](self.process(program, args, read, write, write_error))

    def _expand(self, word: str) -> str:
        parts = []
        for piece in _PIECE.finditer(word):
            if piece["hard"] is not None:
                parts.append(piece["hard"])
            elif piece["soft"] is not None:
                parts.append(re.sub(r'\\(["\\$`])', r"\1", self._substitute(piece["soft"])))
            elif piece["one"] is not None:
                parts.append(piece["one"])
            else:
                parts.append(self._substitute(piece["bare"]))
        return "".join(parts)

    def _substitute(self, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            if found[4]:
                return str(self._code)
            if found[5]:
                return "7"  # $$, an arbitrary process id
            return self.environment.get(found[1] or found[3]) or found[2] or ""

        return bounded_substitution(_VARIABLE, value, text)

    def _check_size(self, words: list[str]) -> None:
        if self._size + sum(map(len, words)) > ARGUMENTS_LIMIT:
            raise ArgumentListTooLong

    def assign(self, words: list[str]) -> list[str]:
        """Set the variables of the assignments that words begin with; return the others."""
        at = 0
        while at < len(words) and (found := _ASSIGNMENT.fullmatch(words[at])):
            self._size += len(words[at]) - len(self.environment.get(found[1], ""))
            self.environment[found[1]] = found[2]
            at += 1
        return words[at:]


def _parse(script: str) -> list[_SimpleCommand]:
    found: list[_SimpleCommand] = []
    command = _SimpleCommand()
    redirect = ""
    for kind, text in [*_tokenize(script), ("operator", ";")]:
        if kind == "redirect":
            if "&" in text:
                command.redirects.append((text, ""))
            else:
                redirect = text
        elif kind == "word":
            if redirect:
                command.redirects.append((redirect, text))
                redirect = ""
            elif not command.words and text in _KEYWORDS:
                raise _ShellSyntaxError(f"syntax error: `{text}` is not simulated")
            else:
                command.words.append(text)
        else:
            if redirect or text in "()":
                raise _ShellSyntaxError(f'syntax error: unexpected "{text}"')
            if command.words or command.redirects:
                command.then = text if text in ("&&", "||", "|") else ";"
                found.append(command)
            command = _SimpleCommand()
    return found


def _tokenize(script: str) -> list[tuple[str, str]]:
    found = []
    position = 0
    while position < len(script):
        token = _TOKEN.match(script, position)
        if token is None:
            raise _ShellSyntaxError("syntax error: unterminated quoted string")
        if token.lastgroup is not None and token.lastgroup != "comment":
            found.append((token.lastgroup, token[0]))
        position = token.end()
    return found


def _write_to(sink: bytearray) -> Write:
    async def write(data: bytes) -> None:
        if len(sink) + len(data) > _MAX_BUFFER:
            raise _OutOfMemory
        sink.extend(data)

    return write


def _read_from(data: bytes) -> Read:
    left = [data] if data else []

    async def read() -> bytes:
        return left.pop() if left else b""

    return read
