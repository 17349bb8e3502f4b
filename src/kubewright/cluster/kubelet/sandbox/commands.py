"""The commands that exec can run in a simulated container.

Each implements the basic use and the common flags and errors of the tool of that name. Commands act only on the
environment and files of the container (`sandboxes`); network tools report that there is no network. Called by `shell`.
"""

from __future__ import annotations

import fnmatch
import io
import posixpath
import random
import re
import tarfile
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, final

import msgspec

from kubewright._base.clock import Clock
from kubewright._base.regexp import BoundedWork, RegexpError, go_regexp
from kubewright.cluster.kubelet.pods.programs import sleep_seconds
from kubewright.cluster.kubelet.sandbox.files import absolute
from kubewright.cluster.kubelet.sandbox.sandboxes import ContainerSandbox

__all__ = ("COMMANDS", "Command", "Process")

Read = Callable[[], Awaitable[bytes]]
Write = Callable[[bytes], Awaitable[None]]

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "a": "\a", "0": "\0", "e": "\x1b"}
_ESCAPE: Final = re.compile(r"\\(.)")
_FORMAT: Final = re.compile(r"%([sdq%])")
_SIZE: Final = re.compile(r"([1-9]\d{0,8}|0)([kKMG]?)")
_MAX_INPUT: Final = 32 * 1024 * 1024


@final
class Process(msgspec.Struct):
    """One run of a command: its arguments, environment and streams."""

    name: str
    args: list[str]
    sandbox: ContainerSandbox
    environment: Mapping[str, str]
    folder: str
    read: Read
    write: Write
    write_error: Write
    clock: Clock

    async def print(self, text: str) -> None:
        """Write a text to stdout."""
        await self.write(text.encode("utf-8", "surrogateescape"))

    async def fail(self, text: str, code: int = 1) -> int:
        """Write an error message; return the exit code."""
        await self.write_error(f"{self.name}: {text}\n".encode("utf-8", "surrogateescape"))
        return code

    def path(self, text: str) -> str:
        """The absolute path of an argument."""
        return absolute(self.folder, text)

    async def read_all(self) -> bytes:
        """Read stdin to its end."""
        parts, size = [], 0
        while data := await self.read():
            size += len(data)
            if size > _MAX_INPUT:
                break
            parts.append(data)
        return b"".join(parts)

    def flags(self) -> tuple[set[str], list[str]]:
        """The letters of the options, and the other arguments."""
        letters: set[str] = set()
        rest: list[str] = []
        for position, word in enumerate(self.args):
            if word == "--":
                return letters, rest + self.args[position + 1 :]
            if word.startswith("-") and len(word) > 1:
                letters.update({word} if word.startswith("--") else word[1:])
            else:
                rest.append(word)
        return letters, rest


Command = Callable[[Process], Awaitable[int]]


async def _true(process: Process) -> int:
    return 0


async def _false(process: Process) -> int:
    return 1


async def _echo(process: Process) -> int:
    newline, escapes, at = True, False, 0
    while at < len(process.args) and re.fullmatch(r"-[neE]+", process.args[at]):
        newline, escapes = newline and "n" not in process.args[at], escapes or "e" in process.args[at]
        at += 1
    text = " ".join(process.args[at:])
    await process.print((_unescape(text) if escapes else text) + ("\n" if newline else ""))
    return 0


async def _printf(process: Process) -> int:
    if not process.args:
        return await process.fail("usage: printf FORMAT [ARGUMENT...]")
    given = iter(process.args[1:])
    form = _unescape(process.args[0])
    await process.print(_FORMAT.sub(lambda found: "%" if found[1] == "%" else next(given, ""), form))
    return 0


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), text)


async def _cat(process: Process) -> int:
    code = 0
    for name in process.flags()[1] or ["-"]:
        if name == "-":
            while data := await process.read():
                await process.write(data)
            continue
        try:
            await process.write(process.sandbox.files.read(process.path(name)))
        except OSError as error:
            code = await process.fail(f"{name}: {error}")
    return code


async def _ls(process: Process) -> int:
    letters, names = process.flags()
    files, code = process.sandbox.files, 0
    for name in names or ["."]:
        path = process.path(name)
        if not files.is_folder(path):
            if files.is_file(path):
                await process.print(_ls_line(process, path, name, long="l" in letters))
            else:
                code = await process.fail(f"{name}: No such file or directory")
            continue
        if len(names) > 1:
            await process.print(f"{name}:\n")
        for entry in files.names(path):
            if not entry.startswith(".") or letters & {"a", "A"}:
                await process.print(_ls_line(process, absolute(path, entry), entry, long="l" in letters))
    return code


def _ls_line(process: Process, path: str, name: str, *, long: bool) -> str:
    if not long:
        return f"{name}\n"
    files = process.sandbox.files
    is_folder = files.is_folder(path)
    size = 4096 if is_folder else len(files.read(path))
    kind = "drwxr-xr-x    2" if is_folder else "-rw-r--r--    1"
    return f"{kind} root     root     {size:>9} {process.clock.now():%b %e %H:%M} {name}\n"


async def _env(process: Process) -> int:
    for name, value in process.environment.items():
        await process.print(f"{name}={value}\n")
    return 0


async def _printenv(process: Process) -> int:
    if not process.args:
        return await _env(process)
    code = 0
    for name in process.args:
        if name in process.environment:
            await process.print(f"{process.environment[name]}\n")
        else:
            code = 1
    return code


async def _pwd(process: Process) -> int:
    await process.print(f"{process.folder}\n")
    return 0


async def _date(process: Process) -> int:
    wrong = [word for word in process.flags()[1] if not word.startswith("+")]
    if wrong:
        return await process.fail(f"invalid date '{wrong[0]}'")
    now = process.clock.now()
    form = next((word[1:] for word in process.args if word.startswith("+")), "%a %b %e %H:%M:%S UTC %Y")
    await process.print(now.strftime(form.replace("%s", str(int(now.timestamp())))) + "\n")
    return 0


async def _hostname(process: Process) -> int:
    await process.print(f"{process.sandbox.hostname}\n")
    return 0


async def _id(process: Process) -> int:
    letters, _ = process.flags()
    await process.print("0\n" if letters & {"u", "g"} else "uid=0(root) gid=0(root) groups=0(root)\n")
    return 0


async def _whoami(process: Process) -> int:
    await process.print("root\n")
    return 0


async def _uname(process: Process) -> int:
    letters, _ = process.flags()
    recursive = f"Linux {process.sandbox.hostname} 6.1.0-simulated #1 SMP x86_64 Linux"
    one = {"n": process.sandbox.hostname, "m": "x86_64", "r": "6.1.0-simulated"}
    await process.print((recursive if "a" in letters else one.get("".join(letters), "Linux")) + "\n")
    return 0


async def _sleep(process: Process) -> int:
    await process.clock.sleep(min(sleep_seconds(process.args), 1e9))
    return 0


async def _mkdir(process: Process) -> int:
    letters, names = process.flags()
    code = 0
    for name in names:
        try:
            process.sandbox.files.make_folder(process.path(name), parents=bool(letters & {"p", "--parents"}))
        except OSError as error:
            code = await process.fail(f"can't create directory '{name}': {error}")
    return code


async def _rm(process: Process) -> int:
    letters, names = process.flags()
    code = 0
    for name in names:
        try:
            process.sandbox.files.remove(process.path(name), recursive=bool(letters & {"r", "R"}))
        except OSError as error:
            if "f" not in letters:
                code = await process.fail(f"can't remove '{name}': {error}")
    return code


async def _touch(process: Process) -> int:
    code = 0
    for name in process.flags()[1]:
        path = process.path(name)
        if not process.sandbox.files.is_file(path) and not process.sandbox.files.is_folder(path):
            try:
                process.sandbox.files.write(path, b"")
            except OSError as error:
                code = await process.fail(f"{name}: {error}")
    return code


async def _tee(process: Process) -> int:
    data = await process.read_all()
    await process.write(data)
    for name in process.flags()[1]:
        try:
            process.sandbox.files.write(process.path(name), data)
        except OSError as error:
            return await process.fail(f"{name}: {error}")
    return 0


async def _dd(process: Process) -> int:
    wanted = dict(word.partition("=")[::2] for word in process.args)
    sizes = [_SIZE.fullmatch(wanted.get(name, default)) for name, default in (("bs", "512"), ("count", "0"))]
    if sizes[0] is None or sizes[0][1] == "0" or sizes[1] is None:
        return await process.fail("invalid number")
    block, count = (int(found[1]) * 1024 ** " KMG".index(found[2].upper() or " ") for found in sizes if found)
    source, target = wanted.get("if", ""), wanted.get("of", "")
    limit = block * count if "count" in wanted else _MAX_INPUT
    try:
        data = await _dd_input(process, source, limit)
        if target:
            process.sandbox.files.write(process.path(target), data)
        else:
            await process.write(data)
    except OSError as error:
        return await process.fail(f"{source or target}: {error}")
    records = f"{len(data) // block}+{int(len(data) % block > 0)} records"
    await process.write_error(f"{records} in\n{records} out\n".encode())
    return 0


async def _dd_input(process: Process, source: str, limit: int) -> bytes:
    if source in ("/dev/zero", "/dev/random", "/dev/urandom"):
        if limit >= _MAX_INPUT:
            raise OSError("No space left on device")
        return bytes(limit) if source == "/dev/zero" else random.randbytes(limit)
    recursive = process.sandbox.files.read(process.path(source)) if source else await process.read_all()
    return recursive[:limit]


async def _test(process: Process) -> int:
    args = process.args[:-1] if process.name == "[" else process.args
    negations = next((at for at, word in enumerate(args) if word != "!"), len(args))
    wanted, args = negations % 2 == 0, args[negations:]
    files = process.sandbox.files
    match args:
        case []:
            holds = False
        case [text]:
            holds = bool(text)
        case ["-n", text]:
            holds = bool(text)
        case ["-z", text]:
            holds = not text
        case ["-d", path]:
            holds = files.is_folder(process.path(path))
        case ["-f" | "-r" | "-s", path]:
            holds = files.is_file(process.path(path))
        case ["-e", path]:
            holds = files.is_file(process.path(path)) or files.is_folder(process.path(path))
        case [left, "=" | "==" | "-eq", right]:
            holds = left == right
        case [left, "!=" | "-ne", right]:
            holds = left != right
        case _:
            return await process.fail("this expression is not simulated", 2)
    return 0 if holds == wanted else 1


async def _run_lines(process: Process, names: list[str]) -> list[bytes] | None:
    parts = []
    for name in names or ["-"]:
        try:
            read = await process.read_all() if name == "-" else process.sandbox.files.read(process.path(name))
        except OSError as error:
            await process.fail(f"{name}: {error}")
            return None
        parts.append(read)
    return b"".join(parts).splitlines(keepends=True)


async def _head(process: Process) -> int:
    count, names, words = 10, [], iter(process.args)
    for word in words:
        if word == "-n":
            word = f"-{next(words, 'n')}"
        found = re.fullmatch(r"-n?(\d+)", word)
        if found:
            count = int(found[1])
        else:
            names.append(word)
    lines = await _run_lines(process, names)
    if lines is None:
        return 1
    chosen = lines[:count] if process.name == "head" else lines[max(0, len(lines) - count) :]
    await process.write(b"".join(chosen))
    return 0


async def _wc(process: Process) -> int:
    letters, names = process.flags()
    lines = await _run_lines(process, names)
    if lines is None:
        return 1
    data = b"".join(lines)
    counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data)}
    wanted = [counts[one] for one in "lwc" if one in letters] or list(counts.values())
    await process.print(" ".join(str(one) for one in wanted) + (f" {names[0]}" if names else "") + "\n")
    return 0


async def _sort(process: Process) -> int:
    lines = await _run_lines(process, process.flags()[1])
    await process.write(b"".join(sorted(lines or ())))
    return 0 if lines is not None else 1


async def _grep(process: Process) -> int:
    letters, rest = process.flags()
    if not rest:
        return await process.fail("a pattern is missing", 2)
    try:
        pattern = go_regexp(f"(?i){rest[0]}" if "i" in letters else rest[0])
    except RegexpError:
        return await process.fail(f"bad regex '{rest[0]}'", 2)
    lines = await _run_lines(process, rest[1:])
    if lines is None:
        return 2
    try:
        with BoundedWork():
            found = [line for line in lines if pattern.match_string(_text(line)) != ("v" in letters)]
    except OverflowError as error:
        return await process.fail(str(error), 2)
    if "q" not in letters:
        await process.write(f"{len(found)}\n".encode() if "c" in letters else b"".join(found))
    return 0 if found else 1


def _text(line: bytes) -> str:
    return line.removesuffix(b"\n").decode(errors="replace")


async def _ps(process: Process) -> int:
    await process.print("PID   USER     TIME  COMMAND\n    1 root      0:00 (simulated)\n")
    return 0


async def _which(process: Process) -> int:
    found = [name for name in process.args if name in COMMANDS or name == "sh"]
    await process.print("".join(f"/bin/{name}\n" for name in found))
    return 0 if len(found) == len(process.args) else 1


async def _no_network(process: Process) -> int:
    return await process.fail("this container is simulated and has no network")


async def _tar(process: Process) -> int:
    """`tar cf - PATH` and `tar xf - -C FOLDER`, as `kubectl cp` runs them."""
    words = list(process.args)
    folder = process.folder
    if "-C" in words and words.index("-C") + 1 < len(words):
        mount_point = words.index("-C")
        folder = process.path(words[mount_point + 1])
        del words[mount_point : mount_point + 2]
    flags, names = (words[0].lstrip("-") if words else ""), [word for word in words[1:] if word != "-"]
    if "f" not in flags or "-" not in words[1:] or not {"c", "x"} & set(flags):
        return await process.fail("only archives on standard input and output are simulated")
    if "c" in flags:
        return await _pack(process, folder, names)
    try:
        _unpack(process, folder, await process.read_all())
    except (tarfile.TarError, EOFError):
        return await process.fail("short read")
    except OSError as error:
        return await process.fail(str(error))
    return 0


async def _pack(process: Process, folder: str, names: list[str]) -> int:
    files, archive, code = process.sandbox.files, io.BytesIO(), 0
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in names:
            path = absolute(folder, name)
            if not files.is_file(path) and not files.is_folder(path):
                code = await process.fail(f"{name}: No such file or directory")
            for file in files.walk(path):
                entry = tarfile.TarInfo(absolute("/", posixpath.join(name, posixpath.relpath(file, path))).lstrip("/"))
                content = files.read(file)
                entry.size, entry.mode, entry.mtime = len(content), 0o644, process.clock.now().timestamp()
                tar.addfile(entry, io.BytesIO(content))
    await process.write(archive.getvalue())
    return code


def _unpack(process: Process, folder: str, data: bytes) -> None:
    files = process.sandbox.files
    # Not compressed, as `kubectl cp` sends it, and without files that are larger than the archive.
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        for entry in tar:
            if entry.issparse() or entry.size > len(data):
                raise tarfile.ReadError("a file is larger than the archive")
            path = absolute(folder, entry.name.lstrip("/"))
            if entry.isdir():
                files.make_folder(path, parents=True)
            elif entry.isfile():
                content = tar.extractfile(entry)
                files.write(path, content.read() if content is not None else b"")


async def _find(process: Process) -> int:
    start = process.args[0] if process.args and not process.args[0].startswith("-") else "."
    pattern = process.args[process.args.index("-name") + 1] if "-name" in process.args[:-1] else "*"
    files = process.sandbox.files
    path = process.path(start)
    if not files.is_folder(path) and not files.is_file(path):
        return await process.fail(f"{start}: No such file or directory")
    for file in files.walk(path):
        if fnmatch.fnmatchcase(posixpath.basename(file), pattern):
            await process.print(f"{posixpath.join(start, posixpath.relpath(file, path))}\n")
    return 0


COMMANDS: Final[Mapping[str, Command]] = {
    "[": _test, "cat": _cat, "chmod": _true, "chown": _true, "curl": _no_network, "date": _date, "dd": _dd,
    "echo": _echo, "env": _env, "false": _false, "find": _find, "grep": _grep, "head": _head, "hostname": _hostname,
    "id": _id, "kill": _true, "ls": _ls, "mkdir": _mkdir, "nc": _no_network, "nslookup": _no_network,
    "ping": _no_network, "printenv": _printenv, "printf": _printf, "ps": _ps, "pwd": _pwd, "rm": _rm, "sleep": _sleep,
    "sort": _sort, "sync": _true, "tail": _head, "tar": _tar, "tee": _tee, "test": _test, "touch": _touch,
    "true": _true, "uname": _uname, "wc": _wc, "wget": _no_network, "which": _which, "whoami": _whoami,
}  # fmt: skip
"""By name."""
