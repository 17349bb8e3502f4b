"""What an attack is, what it is given, and the register of all of them.

    @attack(by="editor")
    async def repeated_names(on: Target) -> Answer:
        '''One object that says the same member a hundred thousand times.'''
        return await on.post(CONFIG_MAPS, ...)

An attack sends what it wants as the user it names and returns the answer that tells how it ended. What has to be there
before, and is not the attacker's to do, is done by the function named as `prepare`, with the rights of an
administrator, before anything is measured.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, final

from tests.security.harness.exchange import Answer, HttpConnection, Peer, request_bytes
from tests.security.harness.limits import REQUEST_LIMIT

from kubewright.apiserver.wire.value_limits import MAX_VALUES

__all__ = ("ATTACKS", "CONFIG_MAPS", "Action", "Attack", "Target", "Who", "attack", "many")

Who = Literal["anonymous", "nobody", "editor", "admin"]
"""Without a certificate; with one and without any right; with the role edit in one namespace; everything."""
Where = Literal["apiserver", "probes", "metrics", "webhooks"]

NAMESPACE: Final = "/api/v1/namespaces/edited"
CONFIG_MAPS: Final = f"{NAMESPACE}/configmaps"
_JSON: Final = "application/json"


@final
class Target:
    """A server as one user reaches it; an attack is given one."""

    def __init__(self, peers: Mapping[str, Peer], who: str) -> None:
        self._peers = peers
        self.peer = peers[who]
        self._connections: list[HttpConnection] = []

    def as_user(self, who: Who) -> Target:
        """The same server as somebody else reaches it."""
        return Target(self._peers, who)

    async def connect(self) -> HttpConnection:
        """A connection, which is kept until the attack has been measured."""
        connection = await self.peer.connect()
        self._connections.append(connection)
        return connection

    def close(self) -> None:
        """Cut all connections that were kept."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = _JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own."""
        fields = {**({} if body is None else {"Content-Type": content_type}), **(headers or {})}
        return await self.peer.ask(request_bytes(method, path, body, headers=fields, close=True))

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.ask("GET", path, headers=headers)

    async def post(self, path: str, body: bytes | dict[str, Any], *, content_type: str = _JSON) -> Answer:
        return await self.ask("POST", path, _encoded(body), content_type=content_type)

    async def put(self, path: str, body: bytes | dict[str, Any], *, content_type: str = _JSON) -> Answer:
        return await self.ask("PUT", path, _encoded(body), content_type=content_type)

    async def patch(
        self, path: str, body: bytes | dict[str, Any] | list[Any], kind: str = "merge-patch+json"
    ) -> Answer:
        return await self.ask("PATCH", path, _encoded(body), content_type=f"application/{kind}")


Action = Callable[[Target], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One entry of the catalogue."""

    topic: str
    name: str
    what: str
    by: Who
    where: Where
    action: Callable[[Target], Awaitable[Answer]]
    prepare: Action | None
    seconds: float
    """How long what it set going is watched after its answer."""
    connections: int
    """How many it holds open, each of which takes some memory for TLS."""
    grows: bool
    """Whether it asks for objects that controllers go on creating: these are the user's, and quotas bound them."""
    spoils: bool
    """Whether the server goes on with it, so that the next attack needs a fresh one."""


ATTACKS: Final[list[Attack]] = []


def attack(
    *,
    by: Who,
    where: Where = "apiserver",
    prepare: Action | None = None,
    seconds: float = 5.0,
    connections: int = 1,
    grows: bool = False,
    spoils: bool = False,
) -> Callable[[Callable[[Target], Awaitable[Answer]]], Callable[[Target], Awaitable[Answer]]]:
    """Register an attack; its name is the function's, its topic the module's, what it does the docstring's."""

    def register(action: Callable[[Target], Awaitable[Answer]]) -> Callable[[Target], Awaitable[Answer]]:
        ATTACKS.append(
            Attack(
                topic=action.__module__.rpartition(".")[2],
                name=action.__name__,
                what=(action.__doc__ or "").strip(),
                by=by,
                where=where,
                action=action,
                prepare=prepare,
                seconds=seconds,
                connections=connections,
                grows=grows,
                spoils=spoils or grows,
            )
        )
        return action

    return register


def many(size: int, *, values: int = 1) -> int:
    """How many items of `size` bytes and `values` values a request may have that is as large as one can be.

    A larger one is refused for its size or for its number of values, which costs nothing.
    """
    return min((REQUEST_LIMIT - 100_000) // size, (MAX_VALUES - 1_000) // values)


def _encoded(body: bytes | dict[str, Any] | list[Any]) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
