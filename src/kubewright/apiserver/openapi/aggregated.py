"""The OpenAPI documents of aggregated API servers: fetched and refreshed every minute.

A server's documents are fetched when it becomes available, when its APIService changes, and every minute, as the user
system:aggregator. The v2 document is fetched whole and merged into this server's (`endpoints`, `merge`). Of v3 only the
index is: requests for its documents are proxied. The v2 document of a server without v3 is converted (`conversion`).
The documents stay until the APIService is deleted, even if the server becomes unavailable. Upstream:
k8s.io/kube-aggregator/pkg/controllers/openapi and openapiv3.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from typing import Any, Final, final

from kubewright._base.tasks import cancel_and_wait
from kubewright.apiserver.openapi.conversion import convert_v2_to_v3
from kubewright.apiserver.openapi.merge import filter_by_paths
from kubewright.apiserver.proxy.aggregator import Aggregator
from kubewright.apiserver.proxy.api_services import AggregatedServer, ServerResponse
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.responses import Reply
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.apiserver.wire.users import User

__all__ = ("AggregatedDocuments",)

Tree = dict[str, Any]

_REFRESH_SECONDS: Final = 60.0
_TIMEOUT: Final = 60.0
_USER: Final = User("system:aggregator", ())
_LOG: Final = logging.getLogger(__name__)


@final
class _ServerDocuments:
    """The documents of one server."""

    def __init__(self) -> None:
        self.generation = -1
        self.due = 0.0
        self.etag = ""
        """The ETag of its v2 document."""
        self.digest = ""
        """The hash of its v2 document."""
        self.v2: Tree | None = None
        self.index: dict[str, str] = {}
        self.converted: Tree | None = None
        self.has_v3 = True


@final
class AggregatedDocuments:
    """Keeps the documents of aggregated API servers."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator = aggregator
        self._documents: dict[str, _ServerDocuments] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._fetching: dict[str, asyncio.Task[None]] = {}
        """Fetches under way, by the name of the APIService: a slow server delays no other."""
        self.generation = 0
        """Increases whenever a document changes."""
        aggregator.subscribe(self._wake.set)

    # start and stop

    def start(self) -> None:
        """Start to fetch."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="aggregated OpenAPI documents")

    async def stop(self) -> None:
        """Stop fetching."""
        if self._task is not None:
            await cancel_and_wait(self._task, *self._fetching.values())
            self._task = None

    @property
    def running(self) -> bool:
        """Whether documents are being fetched."""
        return self._task is not None and not self._task.done()

    # documents

    def v2_documents(self) -> list[tuple[str, Tree]]:
        """The v2 documents with their hashes, by the priority of their servers."""
        documents = (self._documents.get(server.name) for server in self._aggregator.servers())
        return [(one.digest, one.v2) for one in documents if one is not None and one.v2 is not None]

    def index(self) -> dict[str, str]:
        """The v3 index of all servers: the URL of each document by its path."""
        found: dict[str, str] = {}
        for server in self._aggregator.servers():
            documents = self._documents.get(server.name)
            if documents is not None:
                found = {**documents.index, **found}
        return found

    def converted(self) -> dict[str, tuple[str, Tree]]:
        """The v3 documents that were converted from v2, with their hashes, by path."""
        found: dict[str, tuple[str, Tree]] = {}
        for server in self._aggregator.servers():
            documents = self._documents.get(server.name)
            if documents is not None and documents.converted is not None:
                found[server.path.lstrip("/")] = (documents.digest, documents.converted)
        return found

    async def handle(self, request: Request, user: User, path: str) -> Reply:
        """The reply of the server that has the document of a path in the v3 index."""
        for server in self._aggregator.servers():
            documents = self._documents.get(server.name)
            if documents is not None and path in documents.index:
                return await self._aggregator.forward(server, request, user)
        raise LookupError(f"no aggregated API server has the document {path}")

    # fetching

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = min((one.due for one in self._documents.values()), default=None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._wake.wait()
            self._wake.clear()
            servers = {server.name: server for server in self._aggregator.servers()}
            if self._documents.keys() - servers.keys():
                self._documents = {name: one for name, one in self._documents.items() if name in servers}
                self.generation += 1
            for server in servers.values():
                self._sync(server, loop.time())

    def _sync(self, server: AggregatedServer, now: float) -> None:
        documents = self._documents.setdefault(server.name, _ServerDocuments())
        if server.name in self._fetching or (documents.generation == server.generation and now < documents.due):
            return
        documents.due = now + _REFRESH_SECONDS
        if not server.available:
            return
        documents.generation = server.generation
        task = asyncio.get_running_loop().create_task(
            self._fetch(server, documents), name=f"documents of {server.name}"
        )
        self._fetching[server.name] = task
        task.add_done_callback(lambda _: self._fetch_done(server))

    def _fetch_done(self, server: AggregatedServer) -> None:
        self._fetching.pop(server.name, None)
        self._wake.set()  # its APIService may have changed meanwhile

    async def _fetch(self, server: AggregatedServer, documents: _ServerDocuments) -> None:
        try:
            changed = [await self._fetch_v3_index(server, documents), await self._fetch_v2(server, documents)]
        except Exception:
            _LOG.exception("OpenAPI documents could not be fetched", extra={"apiservice": server.name})
            return
        self.generation += any(changed)

    async def _get(self, server: AggregatedServer, path: str, **options: str) -> ServerResponse:
        return await server.fetch(self._aggregator.outbound, path, user=_USER, seconds=_TIMEOUT, **options)

    async def _fetch_v3_index(self, server: AggregatedServer, documents: _ServerDocuments) -> bool:
        """Fetch the v3 index; returns whether it has changed."""
        if not documents.has_v3:
            return False
        response = await self._get(server, "/openapi/v3")
        if response.code == 404:
            # A server without v3 stays without: fall back to v2 for good.
            documents.has_v3, documents.etag, documents.digest = False, "", ""
        tree = _tree(response) or {}
        if not isinstance(tree.get("paths"), dict):
            return False
        found = {path: str((item or {}).get("serverRelativeURL") or "") for path, item in tree["paths"].items()}
        before, documents.index = documents.index, found
        return before != found

    async def _fetch_v2(self, server: AggregatedServer, documents: _ServerDocuments) -> bool:
        """Fetch the v2 document; returns whether it has changed."""
        response = await self._get(server, "/openapi/v2", accept="application/json", etag=documents.etag)
        digest = hashlib.sha512(response.body).hexdigest().upper()
        if digest == documents.digest:
            return False
        document = _tree(response)
        if document is None:
            return False
        documents.etag = response.etag
        below = f"{server.path}/"
        documents.digest = digest
        documents.v2 = filter_by_paths(document, lambda path: path.startswith(below))
        documents.converted = None if documents.has_v3 else convert_v2_to_v3(document)
        return True


def _tree(response: ServerResponse) -> Tree | None:
    if response.code != 200:
        return None
    try:
        tree = decode_json(response.body)
    except StatusError:
        return None
    return tree if isinstance(tree, dict) else None
