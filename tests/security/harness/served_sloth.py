"""A watched process for the harness's own test: a server that holds its loop and takes memory with each request."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

from tests.security.harness.heartbeat import Heartbeat

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
    Heartbeat(options.heartbeat).start()
    print(json.dumps({"probes": {"port": server.sockets[0].getsockname()[1]}}))
    sys.stdout.flush()
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--heartbeat", type=Path, required=True)
    parser.add_argument("--memory", type=int, required=True)
    run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
