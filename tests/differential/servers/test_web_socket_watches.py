"""Watches over WebSockets, as browsers and the clients of fabric8 open them: handshake, messages and the end.

Covers: kubewright.apiserver.wire.web_sockets, kubewright.apiserver.verbs
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest
from tests.differential.servers.server_pair import ServerClient, ServerPair, normalized

pytestmark = [pytest.mark.real]

MAPS = "/api/v1/namespaces/{ns}/configmaps"
KEY = base64.b64encode(b"0123456789abcdef").decode()
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": KEY,
    "Origin": "https://127.0.0.1",
}


async def shake(server: ServerClient, path: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """What the server answers to a handshake; a connection that becomes a WebSocket is closed."""
    async with server.session.get(server.url + path, headers=headers, skip_auto_headers=["Accept"]) as answer:
        found = {"code": answer.status, "body": b"" if answer.status == 101 else await answer.read()}
        for name in ("Sec-WebSocket-Accept", "Sec-WebSocket-Protocol", "Sec-WebSocket-Version", "Upgrade"):
            found[name] = answer.headers.get(name)
        if answer.status == 101 and answer.connection is not None:
            answer.connection.close()
        return found


HANDSHAKES: dict[str, dict[str, str]] = {
    "whole": {},
    "without an origin": {"Origin": ""},
    "with an origin that is no address": {"Origin": "here"},
    "with an origin that is a path": {"Origin": "/here"},
    "with the null origin": {"Origin": "null"},
    "of an old version": {"Sec-WebSocket-Version": "8"},
    "without a version": {"Sec-WebSocket-Version": ""},
    "without a key": {"Sec-WebSocket-Key": ""},
    "for one protocol": {"Sec-WebSocket-Protocol": "binary.k8s.io"},
    "for text": {"Sec-WebSocket-Protocol": "base64.binary.k8s.io"},
    "for a protocol nobody knows": {"Sec-WebSocket-Protocol": "x"},
    "for two protocols": {"Sec-WebSocket-Protocol": "base64.binary.k8s.io, binary.k8s.io"},
    "for another protocol than a WebSocket": {"Upgrade": "h2c"},
    "among other options": {"Connection": "keep-alive, Upgrade"},
}


@pytest.mark.parametrize("name", HANDSHAKES)
async def test_a_handshake_is_answered_alike(pair: ServerPair, name: str) -> None:
    headers = {key: value for key, value in {**HANDSHAKE, **HANDSHAKES[name]}.items() if value}
    path = f"{MAPS}?watch=1&timeoutSeconds=1".replace("{ns}", pair.namespace)

    real, embedded = await asyncio.gather(shake(pair.real, path, headers), shake(pair.embedded, path, headers))

    if real["code"] == 200:  # no WebSocket: the events of an ordinary watch
        real["body"] = embedded["body"] = b""
    assert real == embedded


async def messages(server: ServerClient, path: str, namespace: str, accept: str, protocols: list[str]) -> list[Any]:
    """Begin to watch, create and change an object; what comes until the server ends the watch."""
    path, found = path.replace("{ns}", namespace), list[Any]()
    async with server.session.ws_connect(
        server.url + path, headers={"Accept": accept}, origin="https://127.0.0.1", protocols=protocols, autoclose=False
    ) as socket:
        maps = MAPS.replace("{ns}", namespace)
        sent = {"Content-Type": "application/json"}
        await socket.send_str("nobody reads this")
        await socket.ping(b"there?")
        for method, at, tree in (
            ("POST", maps, {"metadata": {"name": "watched"}, "data": {"a": "b"}}),
            ("PUT", f"{maps}/watched", {"metadata": {"name": "watched"}, "data": {"a": "c" * 70_000}}),
            ("DELETE", f"{maps}/watched", None),
        ):
            body = None if tree is None else json.dumps(tree).encode()
            await server.send(method, at, body, sent, 30.0)
        while (message := await socket.receive()).type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            found.append((message.type.name, message.data[-1:], shown(message)))
        found.append((message.type.name, message.data))
    return found


def shown(message: aiohttp.WSMessage) -> Any:
    if message.type is not aiohttp.WSMsgType.TEXT:
        return None
    tree = json.loads(message.data)
    for row in tree["object"].get("rows", ()):
        row["cells"] = len(row["cells"])  # the last one is an age
    return normalized(tree)


@pytest.mark.parametrize(
    ("accept", "protocols"),
    [
        ("application/json", []),
        ("application/json", ["binary.k8s.io"]),
        ("application/json", ["base64.binary.k8s.io"]),
        ("*/*", []),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", []),
        ("application/vnd.kubernetes.protobuf", []),
    ],
)
async def test_each_event_is_a_message(quiet_pair: ServerPair, accept: str, protocols: list[str]) -> None:
    path = f"{MAPS}?watch=true&timeoutSeconds=1"

    real, embedded = await asyncio.gather(
        *(
            messages(one, path, quiet_pair.namespace, accept, protocols)
            for one in (quiet_pair.real, quiet_pair.embedded)
        )
    )

    assert len(real) == 4
    assert real == embedded


async def test_an_error_of_the_request_is_an_answer(quiet_pair: ServerPair) -> None:
    path = f"{MAPS}?watch=true&labelSelector=a,,b"
    await quiet_pair.send("GET", path, headers=HANDSHAKE)
    await quiet_pair.send("GET", f"{MAPS}?watch=true&resourceVersion=x", headers=HANDSHAKE)
