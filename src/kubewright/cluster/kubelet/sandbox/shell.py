"""A shell for simulated containers: runs a command line, a script or what somebody types, and gives an exit code.

It knows words and quotes, variables, `;`, `&&`, `||`, pipes and redirections, and `cd`, `export` and `exit`; loops,
conditions and functions it refuses, saying so. A program that is not there is refused as a container runtime (126, 127)
or a shell refuses it. The programs are in `commands`; `entering` calls `run`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Final, final

import msgspec

from kubewright._base.clock import Clock
from kubewright.cluster.kubelet.sandbox.commands import COMMANDS, Process, Read, Write
from kubewright.cluster.kubelet.sandbox.files import absolute
from kubewright.cluster.kubelet.sandbox.sandboxes import Sandbox
from kubewright.cluster.kubelet.streaming.terminals import Terminal

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


class _Trouble(Exception):
    """A script that cannot be read."""


class _Left(Exception):
    """`exit`; the code is the shell's last."""


@final
class _Simple(msgspec.Struct):
    """One command of a script, its words still as they were written."""

    words: list[str] = msgspec.field(default_factory=list)
    redirects: list[tuple[str, str]] = msgspec.field(default_factory=list)
    then: str = ";"
    """What follows it: `;`, `&&`, `||` or `|`."""


async def run(argv: Sequence[str], machine: Sandbox, terminal: Terminal, clock: Clock) -> int:
    """Run a command line as a container runtime does; returns the exit code."""
    shell = _Shell(machine, clock)
    name = _program(argv[0])
    if name in _SHELLS:
        return await shell.main(argv, terminal)
    if name == "env" and len(argv) > 1:
        words = [*argv[1:]]
        while words and (found := _ASSIGNMENT.fullmatch(words[0])):
            shell.environment[found[1]] = found[2]
            words.pop(0)
        argv, name = words or ["env"], _program(words[0]) if words else "env"
    if name not in COMMANDS:
        code, why = _refusal(argv[0], machine)
        text = f"OCI runtime exec failed: exec failed: unable to start container process: exec: {why}: unknown\n"
        await terminal.complain(text.encode())
        return code
    process = shell.process(name, list(argv[1:]), terminal.read, terminal.write, terminal.complain)
    return await COMMANDS[name](process)


def _program(word: str) -> str:
    """The command that is meant: by its name, or by its path where such things are."""
    folder, slash, name = word.rpartition("/")
    return name if not slash or folder in _FOLDERS else ""


def _refusal(word: str, machine: Sandbox) -> tuple[int, str]:
    if "/" not in word:
        return 127, f'"{word}": executable file not found in $PATH'
    path = absolute(machine.folder, word)
    if machine.files.is_file(path) or machine.files.is_folder(path):
        return 126, f'"{word}": permission denied'
    return 127, f'"{word}": stat {word}: no such file or directory'


@final
class _Shell:
    """The state that commands of one script share."""

    def __init__(self, machine: Sandbox, clock: Clock) -> None:
        self.environment = dict(machine.environment)
        self.folder = machine.folder
        self._machine = machine
        self._clock = clock
        self._code = 0

    def process(self, name: str, args: list[str], read: Read, write: Write, complain: Write) -> Process:
        return Process(name, args, self._machine, self.environment, self.folder, read, write, complain, self._clock)

    async def main(self, argv: Sequence[str], terminal: Terminal) -> int:
        """`sh -c SCRIPT`, or what is typed."""
        for position, word in enumerate(argv[1:], start=1):
            if word.startswith("-") and word.endswith("c"):
                if position + 1 >= len(argv):
                    await terminal.complain(b"sh: -c requires an argument\n")
                    return 2
                return await self._script(argv[position + 1], terminal)
        with contextlib.suppress(_Left):
            await self._interact(terminal)
        return self._code

    async def _script(self, text: str, terminal: Terminal) -> int:
        with contextlib.suppress(_Left):
            await self._lines(text, terminal)
        return self._code

    async def _lines(self, text: str, terminal: Terminal) -> None:
        try:
            commands = _parsed(text)
        except _Trouble as trouble:
            await terminal.complain(f"sh: {trouble}\n".encode())
            self._code = 2
            return
        await self._commands(commands, terminal)

    async def _interact(self, terminal: Terminal) -> None:
        tty = terminal.options.tty
        line = bytearray()
        if tty:
            await terminal.write(_PROMPT)
        while data := await terminal.read():
            for byte in data:
                if byte == 4 and not line and tty:  # Ctrl-D
                    return
                if byte == 3 and tty:  # Ctrl-C
                    line.clear()
                    await terminal.write(b"^C\n" + _PROMPT)
                elif byte in (10, 13):
                    if tty:
                        await terminal.write(b"\n")
                    await self._lines(line.decode(errors="surrogateescape"), terminal)
                    line.clear()
                    if tty:
                        await terminal.write(_PROMPT)
                elif byte in (8, 127) and tty:
                    if line:
                        del line[-1:]
                        await terminal.write(b"\b \b")
                else:
                    line.append(byte)
                    if tty:
                        await terminal.write(bytes((byte,)))
        if line:
            await self._lines(line.decode(errors="surrogateescape"), terminal)

    async def _commands(self, commands: list[_Simple], terminal: Terminal) -> None:
        read: Read = terminal.read
        before = ";"
        for command in commands:
            skipped = (before == "&&" and self._code != 0) or (before == "||" and self._code == 0)
            if not skipped:
                piped = bytearray()
                write = _into(piped) if command.then == "|" else terminal.write
                self._code = await self._simple(command, read, write, terminal.complain)
                read = _once(bytes(piped)) if command.then == "|" else terminal.read
            if not (skipped and command.then == "|"):  # a pipe is skipped as a whole
                before = command.then

    async def _simple(self, command: _Simple, read: Read, write: Write, complain: Write) -> int:
        words = [self._expanded(word) for word in command.words]
        words = [word for word, raw in zip(words, command.words, strict=True) if word or raw[:1] in "'\""]
        while words and (found := _ASSIGNMENT.fullmatch(words[0])):
            self.environment[found[1]] = found[2]
            words.pop(0)
        written: dict[str, bytearray] = {}
        for operator, target in command.redirects:
            target = self._expanded(target)
            if operator == "<":
                try:
                    read = _once(self._machine.files.read(absolute(self.folder, target)))
                except OSError as error:
                    await complain(f"sh: can't open {target}: {error}\n".encode())
                    return 1
            elif operator in ("2>&1", ">&1"):
                complain = write
            elif operator in (">&2", "1>&2"):
                write = complain
            else:
                sink = self._opened(operator, target, written)
                if operator.startswith("2"):
                    complain = _into(sink)
                else:
                    write = _into(sink)
        code = await self._one(words, read, write, complain) if words else 0
        for path, content in written.items():
            if path != "/dev/null":
                try:
                    self._machine.files.write(path, bytes(content))
                except OSError as error:
                    await complain(f"sh: can't create {path}: {error}\n".encode())
                    return 1
        return code

    def _opened(self, operator: str, target: str, written: dict[str, bytearray]) -> bytearray:
        path = absolute(self.folder, target)
        sink = bytearray()
        if operator.endswith(">>") and self._machine.files.is_file(path):
            sink += self._machine.files.read(path)
        return written.setdefault(path, sink)

    async def _one(self, words: list[str], read: Read, write: Write, complain: Write) -> int:
        name, args = words[0], words[1:]
        if name == "exit":
            self._code = int(args[0]) & 255 if args and args[0].isdecimal() else self._code
            raise _Left
        if name == "cd":
            path = absolute(self.folder, args[0] if args else self.environment.get("HOME", "/"))
            if not self._machine.files.is_folder(path):
                await complain(f"sh: cd: can't cd to {args[0]}: No such file or directory\n".encode())
                return 2
            self.folder = path
            return 0
        if name == "export":
            pairs = (_ASSIGNMENT.fullmatch(word) for word in args)
            self.environment.update({found[1]: found[2] for found in pairs if found})
            return 0
        if name in (":", "set", "trap", "umask", "wait"):
            return 0
        if name == "exec" and args:
            self._code = await self._one(args, read, write, complain)
            raise _Left
        program = _program(name)
        if program not in COMMANDS:
            code, _ = _refusal(name, self._machine)
            why = "Permission denied" if code == 126 else "not found"
            await complain(f"sh: {name}: {why}\n".encode())
            return code
        return await COMMANDS[program](self.process(program, args, read, write, complain))

    def _expanded(self, word: str) -> str:
        parts = []
        for piece in _PIECE.finditer(word):
            if piece["hard"] is not None:
                parts.append(piece["hard"])
            elif piece["soft"] is not None:
                parts.append(re.sub(r'\\(["\\$`])', r"\1", self._with_variables(piece["soft"])))
            elif piece["one"] is not None:
                parts.append(piece["one"])
            else:
                parts.append(self._with_variables(piece["bare"]))
        return "".join(parts)

    def _with_variables(self, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            if found[4]:
                return str(self._code)
            if found[5]:
                return "7"  # a process number, as good as any
            return self.environment.get(found[1] or found[3]) or found[2] or ""

        return _VARIABLE.sub(value, text)


def _parsed(script: str) -> list[_Simple]:
    found: list[_Simple] = []
    command = _Simple()
    redirect = ""
    for kind, text in [*_tokens(script), ("operator", ";")]:
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
                raise _Trouble(f"syntax error: `{text}` is not simulated")
            else:
                command.words.append(text)
        else:
            if redirect or text in "()":
                raise _Trouble(f'syntax error: unexpected "{text}"')
            if command.words or command.redirects:
                command.then = text if text in ("&&", "||", "|") else ";"
                found.append(command)
            command = _Simple()
    return found


def _tokens(script: str) -> list[tuple[str, str]]:
    found = []
    position = 0
    while position < len(script):
        token = _TOKEN.match(script, position)
        if token is None:
            raise _Trouble("syntax error: unterminated quoted string")
        if token.lastgroup is not None and token.lastgroup != "comment":
            found.append((token.lastgroup, token[0]))
        position = token.end()
    return found


def _into(sink: bytearray) -> Write:
    async def write(data: bytes) -> None:
        sink.extend(data)

    return write


def _once(data: bytes) -> Read:
    left = [data] if data else []

    async def read() -> bytes:
        return left.pop() if left else b""

    return read
