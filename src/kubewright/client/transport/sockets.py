"""A connected TCP socket to a host, by whichever of its addresses answers first.

The system resolves names, with its hosts file and search domains. The addresses of a name are tried in turn, a quarter
of a second apart and without giving up on the earlier ones, so that a broken IPv6 route costs no timeout (RFC 8305).
Knows nothing of TLS and HTTP; `transport.pool` connects with it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from itertools import chain, zip_longest

__all__ = ("ascii_name", "connected_socket", "keepalive_socket")

_STAGGER = 0.25

_Address = tuple[int, int, int, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]


def keepalive_socket(family: int, kind: int, protocol: int) -> socket.socket:
    """A socket with TCP keep-alive: it notices within 75 s that its peer is gone, which an idle watch otherwise never
    does.
    """
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):  # not every operating system has all three
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return sock


def ascii_name(host: str) -> str | bytes:
    """A host name as bytes if it is ASCII: Python then skips the IDNA codec and its half a megabyte of tables."""
    return host.encode() if host.isascii() else host


async def connected_socket(host: str, port: int) -> socket.socket:
    """Connect; `OSError` says why no address could be reached, `socket.gaierror` why there is none."""
    addresses = await _addresses(host, port)
    if len(addresses) == 1:
        return await _connect(addresses[0])
    return await _connect_first(addresses)


async def _addresses(host: str, port: int) -> list[_Address]:
    try:
        # A numeric address needs no name server, hence no thread.
        found = socket.getaddrinfo(ascii_name(host), port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (socket.gaierror, UnicodeError):
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except UnicodeError:  # a label that is empty or too long
            raise socket.gaierror(socket.EAI_NONAME, "no such name") from None
    addresses: list[_Address] = [(family, kind, protocol, address) for family, kind, protocol, _, address in found]
    first = [address for address in addresses if address[0] == addresses[0][0]]
    others = [address for address in addresses if address[0] != addresses[0][0]]
    return [address for address in chain.from_iterable(zip_longest(first, others)) if address is not None]


async def _connect(address: _Address) -> socket.socket:
    family, kind, protocol, peer = address
    sock = keepalive_socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        # Not `loop.sock_connect`, which would resolve the address once more and load the IDNA codec.
        error = sock.connect_ex(peer)
        if error == errno.EINPROGRESS:
            await _writable(sock)
            error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))
    except BaseException:
        sock.close()
        raise
    return sock


async def _writable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(sock, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(sock)


async def _connect_first(addresses: list[_Address]) -> socket.socket:
    attempts: set[asyncio.Task[socket.socket]] = set()
    left = addresses[::-1]
    failure = OSError("no address")
    try:
        while left or attempts:
            if left:
                attempts.add(asyncio.ensure_future(_connect(left.pop())))
            done, _ = await asyncio.wait(
                attempts, timeout=_STAGGER if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for attempt in done:
                attempts.discard(attempt)
                error = attempt.exception()
                if error is None:
                    return attempt.result()
                if not isinstance(error, OSError):
                    raise error
                failure = error
        raise failure
    finally:
        await _abandon(attempts)


async def _abandon(attempts: set[asyncio.Task[socket.socket]]) -> None:
    for attempt in attempts:
        attempt.cancel()
    for outcome in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(outcome, socket.socket):
            outcome.close()
