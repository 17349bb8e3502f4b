"""What a command in a simulated container, or its environment, can take of the memory and time of the whole plane.

Covers: kubewright.cluster.kubelet
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.security.spending import spending

from kubewright.cluster.kubelet.logs import ContainerLog
from kubewright.cluster.kubelet.pods.expansion import ArgumentListTooLong, expand
from kubewright.cluster.kubelet.pods.programs import simulated_program
from kubewright.cluster.kubelet.sandbox import shell
from kubewright.cluster.kubelet.sandbox.files import Files
from kubewright.cluster.kubelet.sandbox.sandboxes import ContainerSandbox
from kubewright.cluster.kubelet.streaming.command_streams import CommandStreams, StreamOptions
from kubewright.testing.clock import VirtualClock

MEBIBYTE = 1024 * 1024


class Terminal(CommandStreams):
    """Collects the end of what a command writes."""

    def __init__(self, given: bytes = b"") -> None:
        super().__init__(StreamOptions(stdin=True, stdout=True, stderr=True, tty=False))
        self.given = [given] if given else []
        self.said = self.errors = b""

    async def read(self) -> bytes:
        return self.given.pop() if self.given else b""

    async def _send(self, data: bytes, *, error: bool) -> None:
        if error:
            self.errors = (self.errors + data)[-10_000:]
        else:
            self.said = (self.said + data)[-10_000:]

    async def _write_status(self, status: Mapping[str, Any]) -> None:
        raise AssertionError("a command does not end the conversation")


def container() -> ContainerSandbox:
    return ContainerSandbox(hostname="h", folder="/tmp", environment={"HOME": "/"}, files=Files())


async def run(*argv: str, inside: ContainerSandbox | None = None, given: bytes = b"") -> tuple[int, bytes, bytes]:
    streams = Terminal(given)
    code = await shell.run(argv, inside or container(), streams, VirtualClock())
    return code, streams.said, streams.errors


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "a"),
        ("$(A)$(B)", "a$(B)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$a"),
        ("$A $( $(", "$A $( $("),
        ("$(A", "$(A"),
        ("$(_A-1.x)", "dotted"),
    ],
)
def test_references_are_expanded_as_a_kubelet_does(text: str, expanded: str) -> None:
    assert expand(text, {"A": "a", "_A-1.x": "dotted"}) == expanded


def test_variables_that_double_each_other_are_refused() -> None:
    environment = {"A": "x" * 100_000}

    with spending() as spent, pytest.raises(ArgumentListTooLong, match="argument list too long"):
        expand("$(A)" * 100_000, environment)
    assert spent.bytes < MEBIBYTE


def test_a_program_with_arguments_that_no_kernel_takes_fails() -> None:
    with spending() as spent:
        program = simulated_program("busybox", ["echo", "$(A)" * 100_000], env={"A": "x" * 100_000})

    assert (program.exit_code, program.output) == (128, ("exec echo: argument list too long",))
    assert spent.bytes < 2 * MEBIBYTE


def test_the_arguments_of_a_program_have_a_limit_together() -> None:
    with spending() as spent:
        program = simulated_program("busybox", ["echo", *["$(A)"] * 50_000], env={"A": "x" * 100_000})

    assert (program.exit_code, program.output) == (128, ("exec echo: argument list too long",))
    assert spent.bytes < 8 * MEBIBYTE


async def test_a_variable_that_doubles_itself_ends_at_the_limit() -> None:
    with spending() as spent:
        code, said, errors = await run("sh", "-c", "x=aaaaaaaa;" + "x=$x$x;" * 60 + "echo still here")

    assert (code, said) == (0, b"still here\n")
    assert b"sh: argument list too long\n" in errors
    assert spent.bytes < 5 * MEBIBYTE


async def test_many_variables_together_have_a_limit() -> None:
    script = f"x={'x' * 100_000};" + "".join(f"v{number}=$x;" for number in range(100)) + "echo $v1$v2"
    code, _, errors = await run("sh", "-c", script)

    assert (code, b"argument list too long" in errors) == (126, True)


async def test_a_pipe_and_a_redirection_hold_only_so_much() -> None:
    inside = container()
    inside.files.write("/tmp/f", bytes(10 * MEBIBYTE))
    with spending() as spent:
        piped = await run("sh", "-c", f"cat {'f ' * 200} | wc -c", inside=inside)
        stored = await run("sh", "-c", f"cat {'f ' * 200} > g", inside=inside)

    assert piped[2] == stored[2] == b"Killed\n"
    assert stored[0] == 137
    assert spent.bytes < 120 * MEBIBYTE


async def test_files_share_the_space_of_a_container_and_each_takes_some() -> None:
    files = Files()
    count = 0
    with suppress(OSError):
        for count in range(100_000):
            files.write(f"/tmp/{count}", b"")
    assert 10_000 < count < 99_999

    with pytest.raises(OSError, match="No space left on device"):
        files.write("/tmp/more", b"")
    files.remove("/tmp/1", recursive=False)
    files.write("/tmp/more", b"")


@pytest.mark.parametrize("kind", ["compressed", "sparse"])
async def test_an_archive_with_a_bomb_in_it_is_refused(kind: str) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("bomb")
        if kind == "sparse":
            entry.pax_headers = {"GNU.sparse.size": str(1 << 40), "GNU.sparse.map": "0,0"}
            tar.addfile(entry)
        else:
            entry.size = 20 * MEBIBYTE
            tar.addfile(entry, io.BytesIO(bytes(entry.size)))
    data = archive.getvalue()
    if kind == "compressed":
        data = gzip.compress(data)
    with spending() as spent:
        code, _, errors = await run("tar", "xf", "-", given=data)

    assert (code, errors) == (1, b"tar: short read\n")
    assert spent.bytes < 5 * MEBIBYTE


async def test_a_pattern_that_backtracks_ends() -> None:
    inside = container()
    inside.files.write("/tmp/f", b"a" * 50 + b"b\n" + b"c\n")

    assert await run("grep", "^(a+)+$", "/tmp/f", inside=inside) == (1, b"", b"")
    assert await run("grep", "-i", "^C$", "/tmp/f", inside=inside) == (0, b"c\n", b"")


def test_a_log_has_a_limit_in_bytes() -> None:
    log = ContainerLog()
    for _ in range(100):
        log.write(datetime.now(UTC), ["x" * MEBIBYTE])

    assert sum(len(text) for _, text in log.lines) <= 10 * MEBIBYTE
    assert log.line_count == 100
