"""A group that is served elsewhere, for tests that ask both servers about it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.differential.servers.server_pair import Ask, Twin, Twins, get, merge
from tests.stub_server import Asked, Elsewhere, Said

__all__ = ("SERVICES", "Extension", "always", "extended", "told")

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class Extension:
    """A group that is served elsewhere, by one server for the real one and another for the embedded one."""

    def __init__(self, twins: Twins, servers: tuple[Elsewhere, Elsewhere]) -> None:
        self.twins = twins
        self.servers = servers
        self.group = f"{twins.namespace}.example.io"
        self.names: list[str] = []

    @property
    def sides(self) -> tuple[tuple[Twin, Elsewhere], tuple[Twin, Elsewhere]]:
        return (self.twins.real, self.servers[0]), (self.twins.embedded, self.servers[1])

    def say(self, path: str, answer: Callable[[Asked], Said]) -> None:
        """Answer a path from now on; `{group}` in it is the group."""
        for server in self.servers:
            server.answers[path.replace("{group}", self.group)] = answer

    async def register(self, version: str = "v1", *, service: str = "ext", port: int = 0, **spec: Any) -> None:
        """Make the APIService."""
        name = f"{version}.{self.group}"
        self.names.append(name)
        for twin, server in self.sides:
            reference = {"name": service, "namespace": self.twins.namespace, "port": port or server.port}
            body = {"group": self.group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 10,
                    "service": reference, **({"insecureSkipTLSVerify": True} | spec)}  # fmt: skip
            tree = {"metadata": {"name": name}, "spec": {key: value for key, value in body.items() if value}}
            answer = await twin.send(
                "POST", SERVICES, json.dumps(tree).encode(), {"Content-Type": "application/json"}, 30
            )
            assert answer.code == 201, answer.body

    async def close(self) -> None:
        """Delete what was made."""
        for name in self.names:
            await self.twins.both("DELETE", f"{SERVICES}/{name}")

    def settled(self, reason: str, version: str = "v1") -> Ask:
        """Ask until its condition has this reason."""
        return get(
            f"{SERVICES}/{version}.{self.group}",
            until=lambda tree: f'"{reason}"' in json.dumps(tree.get("status")),
            ignore=("metadata.managedFields", "spec.service.port"),
        )

    def touch(self, word: str = "yes") -> Ask:
        """Change its APIService, whereupon it is looked at."""
        return merge(f"{SERVICES}/v1.{self.group}", {"metadata": {"annotations": {"touched": word}}}, quiet=True)

    async def asked(self, wanted: Callable[[Asked], bool]) -> list[list[tuple[str, str]]]:
        """The headers of the first such request that each of the servers got."""
        found = []
        for server in self.servers:
            one = None
            async with asyncio.timeout(60):
                while one is None:
                    one = next((item for item in server.asked if wanted(item)), None)
                    await asyncio.sleep(0.02)
            found.append(shown(one))
        return found


@asynccontextmanager
async def extended(twins: Twins, servers: tuple[Elsewhere, Elsewhere]) -> AsyncIterator[Extension]:
    """A fresh group; its version v1 answers once it is registered."""
    made = Extension(twins, servers)
    for server in servers:
        server.asked.clear()
        server.answers.clear()
    made.say("/apis/{group}/v1", discovery(made.group))
    service = {"metadata": {"name": "ext"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    await twins.both("POST", "/api/v1/namespaces/{ns}/services", service)
    yield made
    await made.close()


def discovery(group: str) -> Callable[[Asked], Said]:
    """What every extension server must be able to say; asked for anything else it tells what it was asked."""

    def answer(asked: Asked) -> Said:
        if asked.path == f"/apis/{group}/v1":
            verbs = ["get", "list"]
            kinds = [
                {"name": "foos", "singularName": "foo", "namespaced": True, "kind": "Foo", "verbs": verbs,
                 "shortNames": ["fo"]},
                {"name": "foos/status", "singularName": "", "namespaced": True, "kind": "Foo", "verbs": ["get"]},
            ]  # fmt: skip
            return Said(
                {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/v1", "resources": kinds}
            )
        return told(asked)

    return answer


def told(asked: Asked) -> Said:
    return Said({"method": asked.method, "path": asked.path, "headers": shown(asked), "body": asked.body.decode()})


def shown(asked: Asked) -> list[tuple[str, str]]:
    """The headers of a request, without what is another one each time."""
    hidden = ("accept-encoding", "audit-id", "x-remote-extra")
    return sorted(
        (name, re.sub(r"^localhost:\d+$", "localhost:<port>", value))
        for name, value in asked.headers
        if not name.startswith(hidden)
    )


def always(said: Said) -> Callable[[Asked], Said]:
    return lambda asked: said
