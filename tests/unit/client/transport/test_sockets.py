"""Connecting to a name with several addresses: the first that answers wins, and nothing is left open."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from kubewright.client.transport import sockets
from kubewright.client.transport.sockets import connected_socket


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def name_for(monkeypatch: pytest.MonkeyPatch, *addresses: tuple[str, int]) -> None:
    async def found(host: str, port: int) -> list[sockets._Address]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, address) for address in addresses]

    monkeypatch.setattr(sockets, "_addresses", found)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


async def test_the_socket_is_kept_alive(port: int) -> None:
    with await connected_socket("127.0.0.1", port) as sock:
        peer = sock.getpeername()
        kept = sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)

    assert peer == ("127.0.0.1", port)
    assert kept != 0


async def test_an_address_that_refuses_does_not_keep_from_the_next(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    name_for(monkeypatch, ("127.0.0.1", closed_port()), ("127.0.0.1", port))

    with await connected_socket("api.example", 0) as sock:
        peer = sock.getpeername()

    assert peer == ("127.0.0.1", port)


async def test_an_address_that_does_not_answer_is_overtaken(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(sockets, "_STAGGER", 0.01)
    name_for(monkeypatch, ("192.0.2.1", 1), ("127.0.0.1", port))
    connect = sockets._connect
    given_up = asyncio.Event()

    async def stalling(address: sockets._Address) -> socket.socket:
        if address[3] != ("192.0.2.1", 1):
            return await connect(address)
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        raise AssertionError

    monkeypatch.setattr(sockets, "_connect", stalling)

    with await connected_socket("api.example", 0) as sock:
        peer = sock.getpeername()

    assert peer == ("127.0.0.1", port)
    assert given_up.is_set()


async def test_when_all_addresses_refuse_that_is_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = closed_port()
    name_for(monkeypatch, ("127.0.0.1", refused), ("127.0.0.1", refused))

    with pytest.raises(ConnectionRefusedError):
        await connected_socket("api.example", 0)


async def test_a_name_that_cannot_be_one_does_not_exist() -> None:
    with pytest.raises(socket.gaierror) as caught:
        await connected_socket("a" * 300 + ".example", 443)

    assert caught.value.errno == socket.EAI_NONAME
