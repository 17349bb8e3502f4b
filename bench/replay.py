"""A server of prepared bytes, in a process of its own: one streaming list of Pods, then changes to them when told.

It speaks just enough HTTP over TLS for a watch, and costs so little that whoever reads is what is measured. Used by
`events`; `python -m bench.replay FOLDER OBJECTS CHANGES` is the child.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self, final

from bench.pods import pod_bytes
from kubewright._base.certificates import Authority
from kubewright._base.loop import run

__all__ = ("Replay",)

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
_FIRST_VERSION = 1_000_000
_LIST_END = (
    b'{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"999999",'
    b'"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
)


@final
class Replay:
    """`async with` starts the server and ends it."""

    def __init__(self, *, objects: int, changes: int) -> None:
        self._counts = (str(objects), str(changes))

    async def __aenter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        authority = Authority.create("replay-ca")
        pair = authority.server("pods", hosts=("127.0.0.1",))
        (folder / "pair.pem").write_bytes(pair.key + pair.certificate)
        self.ca = authority.certificate
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.replay", str(folder), *self._counts,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.url = f"https://127.0.0.1:{int(await self._process.stdout.readline())}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        await self._process.wait()
        self._folder.cleanup()

    async def go(self) -> None:
        """Let it send the changes, which it has prepared."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        await self._process.stdin.drain()


async def _serve(folder: Path, objects: int, changes: int) -> None:
    told = asyncio.Event()
    prepared = [_changed(number * 7919 % objects, _FIRST_VERSION + number) for number in range(changes)]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_HEAD)
        for number in range(objects):
            writer.write(_chunk(_event(b"ADDED", pod_bytes(number))))
            await writer.drain()
        writer.write(_chunk(_LIST_END))
        await told.wait()
        for event in prepared:  # each in a chunk and a write of its own, as a real server sends them
            writer.write(_chunk(event))
            await writer.drain()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pair.pem")
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    told.set()
    await server.serve_forever()


def _changed(number: int, version: int) -> bytes:
    old = b'"resourceVersion":"%d"' % (100_000 + number)
    return _event(b"MODIFIED", pod_bytes(number).replace(old, b'"resourceVersion":"%d"' % version))


def _event(kind: bytes, value: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind, value)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


if __name__ == "__main__":
    run(_serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
