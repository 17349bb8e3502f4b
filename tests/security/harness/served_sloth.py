"""A watched process for the harness's own test: a server that holds its loop and takes memory with each request."""

from __future__ import annotations

import argparse
import asyncio
import time

from tests.security.harness.watched_program import report_ready, watched_options

from kubewright._base.loop import run


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Spend 400 ms and 200 MB before an answer."""
    await reader.readuntil(b"\r\n\r\n")
    taken = b"x" * 200_000_000
    time.sleep(0.4)  # noqa: ASYNC251 - what it is for
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"[: len(taken)])
    await writer.drain()
    writer.close()


async def serve(options: argparse.Namespace) -> None:
    """Say where it is and run until it is ended."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    report_ready(options, {"probes": {"port": server.sockets[0].getsockname()[1]}})
    await server.serve_forever()


if __name__ == "__main__":
    run(serve(watched_options()))
