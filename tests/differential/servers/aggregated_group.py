"""An API group that an extension API server serves, for tests that ask both servers about it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.differential.servers.server_pair import Request, ServerClient, ServerPair, get, merge
from tests.stub_server import ReceivedRequest, StubResponse, StubServer

from kubewright.testing import time_limit

__all__ = ("SERVICES", "AggregatedGroup", "aggregated_group", "always", "echoed")

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class AggregatedGroup:
    """An aggregated API group. Each API server has an extension server of its own for it."""

    def __init__(self, pair: ServerPair, servers: tuple[StubServer, StubServer]) -> None:
        self.pair = pair
        self.servers = servers
        self.group = f"{pair.namespace}.example.io"
        self.names: list[str] = []

    @property
    def sides(self) -> tuple[tuple[ServerClient, StubServer], tuple[ServerClient, StubServer]]:
        return (self.pair.real, self.servers[0]), (self.pair.embedded, self.servers[1])

    def respond(self, path: str, answer: Callable[[ReceivedRequest], StubResponse]) -> None:
        """Set the handler of a path; `{group}` in it is the group."""
        for server in self.servers:
            server.handlers[path.replace("{group}", self.group)] = answer

    async def register(self, version: str = "v1", *, service: str = "ext", port: int = 0, **spec: Any) -> None:
        """Create the APIService on both servers."""
        name = f"{version}.{self.group}"
        self.names.append(name)
        for apiserver, server in self.sides:
            reference = {"name": service, "namespace": self.pair.namespace, "port": port or server.port}
            body = {"group": self.group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 10,
                    "service": reference, **({"insecureSkipTLSVerify": True} | spec)}  # fmt: skip
            tree = {"metadata": {"name": name}, "spec": {key: value for key, value in body.items() if value}}
            answer = await apiserver.send(
                "POST", SERVICES, json.dumps(tree).encode(), {"Content-Type": "application/json"}, 30
            )
            assert answer.code == 201, answer.body

    async def close(self) -> None:
        """Delete the APIServices."""
        for name in self.names:
            await self.pair.both("DELETE", f"{SERVICES}/{name}")

    def settled(self, reason: str, version: str = "v1") -> Request:
        """A request that repeats until the APIService's condition has this reason."""
        return get(
            f"{SERVICES}/{version}.{self.group}",
            until=lambda tree: f'"{reason}"' in json.dumps(tree.get("status")),
            ignore=("metadata.managedFields", "spec.service.port"),
        )

    def touch(self, word: str = "yes") -> Request:
        """Change the APIService, so that its controller checks it."""
        return merge(f"{SERVICES}/v1.{self.group}", {"metadata": {"annotations": {"touched": word}}}, quiet=True)

    async def received(self, wanted: Callable[[ReceivedRequest], bool]) -> list[list[tuple[str, str]]]:
        """The headers of the first such request that each extension server got."""
        found = []
        for server in self.servers:
            one = None
            async with time_limit(60):
                while one is None:
                    one = next((item for item in server.received if wanted(item)), None)
                    await asyncio.sleep(0.02)
            found.append(shown(one))
        return found


@asynccontextmanager
async def aggregated_group(pair: ServerPair, servers: tuple[StubServer, StubServer]) -> AsyncIterator[AggregatedGroup]:
    """A fresh group; its version v1 answers once it is registered."""
    made = AggregatedGroup(pair, servers)
    for server in servers:
        server.received.clear()
        server.handlers.clear()
    made.respond("/apis/{group}/v1", discovery(made.group))
    service = {"metadata": {"name": "ext"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    await pair.both("POST", "/api/v1/namespaces/{ns}/services", service)
    yield made
    await made.close()


def discovery(group: str) -> Callable[[ReceivedRequest], StubResponse]:
    """Serves the discovery document of the group; echoes every other request."""

    def answer(received: ReceivedRequest) -> StubResponse:
        if received.path == f"/apis/{group}/v1":
            verbs = ["get", "list"]
            kinds = [
                {"name": "foos", "singularName": "foo", "namespaced": True, "kind": "Foo", "verbs": verbs,
                 "shortNames": ["fo"]},
                {"name": "foos/status", "singularName": "", "namespaced": True, "kind": "Foo", "verbs": ["get"]},
            ]  # fmt: skip
            return StubResponse(
                {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/v1", "resources": kinds}
            )
        return echoed(received)

    return answer


def echoed(received: ReceivedRequest) -> StubResponse:
    """A response that describes the request."""
    return StubResponse(
        {"method": received.method, "path": received.path, "headers": shown(received), "body": received.body.decode()}
    )


def shown(received: ReceivedRequest) -> list[tuple[str, str]]:
    """The headers of a request, without those that differ from request to request."""
    hidden = ("accept-encoding", "audit-id", "x-remote-extra")
    return sorted(
        (name, re.sub(r"^localhost:\d+$", "localhost:<port>", value))
        for name, value in received.headers
        if not name.startswith(hidden)
    )


def always(response: StubResponse) -> Callable[[ReceivedRequest], StubResponse]:
    """A handler that gives the same response each time."""
    return lambda received: response
