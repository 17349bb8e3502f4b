"""The shell and commands of simulated containers: output and exit codes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from kubewright._base.clock import SystemClock
from kubewright.cluster.kubelet.sandbox import shell
from kubewright.cluster.kubelet.sandbox.files import Files
from kubewright.cluster.kubelet.sandbox.sandboxes import ContainerSandbox
from kubewright.cluster.kubelet.streaming.command_streams import CommandStreams, StreamOptions


class ScriptedStreams(CommandStreams):
    """A terminal of a test."""

    def __init__(self, stdin: bytes = b"", *, tty: bool = False) -> None:
        super().__init__(StreamOptions(True, True, not tty, tty))
        self.out, self.errors = b"", b""
        self._input = [stdin[start : start + 7] for start in range(0, len(stdin), 7)]

    async def read(self) -> bytes:
        return self._input.pop(0) if self._input else b""

    async def _send(self, data: bytes, *, error: bool) -> None:
        if error:
            self.errors += data
        else:
            self.out += data

    async def _write_status(self, status: Mapping[str, Any]) -> None:
        raise AssertionError("a command does not end the conversation")


@pytest.fixture
def sandbox() -> ContainerSandbox:
    files = Files()
    files.add_file("/etc/hostname", b"web\n")
    files.mount("/etc/settings", {"app.ini": b"a=1\nb=2\n", "deep/x": b"x"})
    return ContainerSandbox("web", "/", {"NAME": "world", "EMPTY": ""}, files)


async def ran(sandbox: ContainerSandbox, *argv: str, stdin: bytes = b"") -> tuple[int, str, str]:
    streams = ScriptedStreams(stdin)
    code = await shell.run(argv, sandbox, streams, SystemClock())
    return code, streams.out.decode(), streams.errors.decode()


@pytest.mark.parametrize(
    ("script", "code", "out"),
    [
        ("echo hello $NAME", 0, "hello world\n"),
        ("echo '$NAME' \"${NAME}s\" ${NONE:-else}", 0, "$NAME worlds else\n"),
        ("false && echo no || echo yes", 0, "yes\n"),
        ("true || echo no; echo $?", 0, "0\n"),
        ("false; echo $?", 0, "1\n"),
        ("exit 300", 44, ""),
        ("false && echo no | cat; echo on", 0, "on\n"),
        ("X=1; export Y=2; echo $X$Y", 0, "12\n"),
        ("cat /etc/settings/app.ini | grep b | wc -l", 0, "1\n"),
        ("echo a > /tmp/f; echo b >> /tmp/f; cat < /tmp/f", 0, "a\nb\n"),
        ("cd /etc/settings && ls && pwd", 0, "app.ini\ndeep\n/etc/settings\n"),
        ("test -f /etc/hostname && [ -d /etc ] && echo there", 0, "there\n"),
        ("[ ! -e /none ] && printf '%s-%s\\n' a b", 0, "a-b\n"),
        ("mkdir -p /a/b; touch /a/b/c; rm -r /a/b; ls /a", 0, ""),
        ("echo one; # nothing\necho two", 0, "one\ntwo\n"),
        ("head -n 1 /etc/settings/app.ini; tail -1 /etc/settings/app.ini", 0, "a=1\nb=2\n"),
        ("cat /none 2>/dev/null", 1, ""),
        ("cat /none 2>&1", 1, "cat: /none: No such file or directory\n"),
        ("find /etc/settings -name 'x'", 0, "/etc/settings/deep/x\n"),
        ("exec hostname; echo never", 0, "web\n"),
        ("dd if=/dev/zero of=/tmp/z bs=1k count=3 2>/dev/null; wc -c /tmp/z", 0, "3072 /tmp/z\n"),
        ("dd if=/dev/urandom bs=2M count=1 2>/dev/null | wc -c", 0, "2097152\n"),
        ("echo hello | dd bs=2 count=2 2>/dev/null", 0, "hell"),
    ],
)
async def test_a_script_has_output_and_an_exit_code(
    sandbox: ContainerSandbox, script: str, code: int, out: str
) -> None:
    assert await ran(sandbox, "sh", "-c", script) == (code, out, "")


@pytest.mark.parametrize(
    ("script", "code", "errors"),
    [
        ("nosuch", 127, "sh: nosuch: not found\n"),
        ("/etc/hostname", 126, "sh: /etc/hostname: Permission denied\n"),
        ("echo 'open", 2, "sh: syntax error: unterminated quoted string\n"),
        ("while true; do echo; done", 2, "sh: syntax error: `while` is not simulated\n"),
        ("echo x > /etc/settings/app.ini", 1, "sh: can't create /etc/settings/app.ini: Read-only file system\n"),
        ("dd if=/none of=/tmp/f", 1, "dd: /none: No such file or directory\n"),
        ("dd if=/dev/zero of=/tmp/f", 1, "dd: /dev/zero: No space left on device\n"),
        ("dd bs=0", 1, "dd: invalid number\n"),
        ("dd if=/etc/hostname of=/tmp/f bs=3", 0, "1+1 records in\n1+1 records out\n"),
        ("date foo", 1, "date: invalid date 'foo'\n"),
        ("curl http://example.com", 1, "curl: this container is simulated and has no network\n"),
    ],
)
async def test_errors_are_written_to_stderr(sandbox: ContainerSandbox, script: str, code: int, errors: str) -> None:
    assert await ran(sandbox, "sh", "-c", script) == (code, "", errors)


async def test_input_goes_through_a_command(sandbox: ContainerSandbox) -> None:
    assert await ran(sandbox, "cat", stdin=b"line one\nline two\n") == (0, "line one\nline two\n", "")
    assert await ran(sandbox, "/bin/sh", stdin=b"echo a\nexit 5\necho b\n") == (5, "a\n", "")


async def test_a_terminal_echoes_and_prompts(sandbox: ContainerSandbox) -> None:
    streams = ScriptedStreams(b"ehco\x7f\x7f\x7fcho hi\rexit\r", tty=True)

    assert await shell.run(["sh"], sandbox, streams, SystemClock()) == 0

    assert streams.out.startswith(b"/ # ehco")
    assert b"\r\nhi\r\n/ # exit\r\n" in streams.out


async def test_a_missing_program_is_an_error_of_the_runtime(sandbox: ContainerSandbox) -> None:
    code, _, errors = await ran(sandbox, "psql")

    assert code == 127
    assert errors.startswith("OCI runtime exec failed: ")
    assert (await ran(sandbox, "/etc/hostname"))[0] == 126
    assert (await ran(sandbox, "env", "A=b", "printenv", "A"))[1] == "b\n"


async def test_a_sleeping_command_can_be_cancelled(sandbox: ContainerSandbox) -> None:
    sleeping = asyncio.ensure_future(shell.run(["sleep", "1000"], sandbox, ScriptedStreams(), SystemClock()))
    await asyncio.sleep(0)
    sleeping.cancel()

    with pytest.raises(asyncio.CancelledError):
        await sleeping
