"""The OpenAPI documents of extension servers: fetched, kept, and asked for again every minute.

A server is asked once it answers at all, again when its APIService changes, and then every minute, as the user
`system:aggregator`. Of the older form its whole document is fetched, and told of as part of this server's own (`pages`,
`merging`). Of the newer form only the index is: its documents are passed on as clients ask for them. A server that has
no newer form is told of by its older one (`upgrading`). What was fetched stays until the APIService goes, even if the
server answers no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from typing import Any, Final, final

from kubewright._base.tasks import cancel_and_wait
from kubewright.apiserver.openapi.merge import part_of
from kubewright.apiserver.openapi.upgrade import upgraded_document
from kubewright.apiserver.proxy.aggregator import Aggregator
from kubewright.apiserver.proxy.api_services import ExtensionServer, Fetched
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.responses import Reply
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.apiserver.wire.users import User

__all__ = ("AggregatedDocuments",)

Tree = dict[str, Any]

_EVERY: Final = 60.0
_LONGEST: Final = 60.0
_USER: Final = User("system:aggregator", ())
_LOG: Final = logging.getLogger(__name__)


@final
class _Kept:
    """What is known of the documents of one server."""

    def __init__(self) -> None:
        self.turn = -1
        self.due = 0.0
        self.tag = ""
        """What the server said with its older document."""
        self.mark = ""
        """A hash of it."""
        self.old: Tree | None = None
        self.index: dict[str, str] = {}
        self.upgraded: Tree | None = None
        self.has_newer = True


@final
class AggregatedDocuments:
    """Keeps the documents of extension servers."""

    def __init__(self, aggregation: Aggregator) -> None:
        self._aggregation = aggregation
        self._kept: dict[str, _Kept] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._busy: dict[str, asyncio.Task[None]] = {}
        """Servers that are being asked, by name: a slow one keeps nobody waiting but those who ask for its kinds."""
        self.generation = 0
        """Grows whenever there is something else to tell of."""
        aggregation.subscribe(self._wake.set)

    # life

    def start(self) -> None:
        """Fetch from now on."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work(), name="documents of extension servers")

    async def stop(self) -> None:
        """Fetch no more."""
        if self._task is not None:
            await cancel_and_wait(self._task, *self._busy.values())
            self._task = None

    @property
    def running(self) -> bool:
        """Whether documents are fetched."""
        return self._task is not None and not self._task.done()

    # what there is

    def old_documents(self) -> list[tuple[str, Tree]]:
        """The documents of the older form with a hash of each, those of more important servers first."""
        kept = (self._kept.get(server.name) for server in self._aggregation.servers())
        return [(one.mark, one.old) for one in kept if one is not None and one.old is not None]

    def index(self) -> dict[str, str]:
        """Where the documents of the newer form are that extension servers answer, by their path in the index."""
        found: dict[str, str] = {}
        for server in self._aggregation.servers():
            kept = self._kept.get(server.name)
            if kept is not None:
                found = {**kept.index, **found}
        return found

    def upgraded(self) -> dict[str, tuple[str, Tree]]:
        """The documents of the newer form that this server answers for others, with a hash of each."""
        found: dict[str, tuple[str, Tree]] = {}
        for server in self._aggregation.servers():
            kept = self._kept.get(server.name)
            if kept is not None and kept.upgraded is not None:
                found[server.path.lstrip("/")] = (kept.mark, kept.upgraded)
        return found

    async def answer(self, request: Request, user: User, path: str) -> Reply:
        """The answer of the extension server that has the document of a path of the index."""
        for server in self._aggregation.servers():
            kept = self._kept.get(server.name)
            if kept is not None and path in kept.index:
                return await self._aggregation.pass_on(server, request, user)
        raise LookupError(f"no extension server has the document {path}")

    # fetching

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = min((one.due for one in self._kept.values()), default=None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._wake.wait()
            self._wake.clear()
            servers = {server.name: server for server in self._aggregation.servers()}
            if self._kept.keys() - servers.keys():
                self._kept = {name: one for name, one in self._kept.items() if name in servers}
                self.generation += 1
            for server in servers.values():
                self._attend(server, loop.time())

    def _attend(self, server: ExtensionServer, now: float) -> None:
        kept = self._kept.setdefault(server.name, _Kept())
        if server.name in self._busy or (kept.turn == server.turn and now < kept.due):
            return
        kept.due = now + _EVERY
        if not server.available:
            return
        kept.turn = server.turn
        task = asyncio.get_running_loop().create_task(self._fetch(server, kept), name=f"documents of {server.name}")
        self._busy[server.name] = task
        task.add_done_callback(lambda _: self._fetched_all(server))

    def _fetched_all(self, server: ExtensionServer) -> None:
        self._busy.pop(server.name, None)
        self._wake.set()  # it may have had a turn meanwhile

    async def _fetch(self, server: ExtensionServer, kept: _Kept) -> None:
        try:
            changed = [await self._fetch_index(server, kept), await self._fetch_old(server, kept)]
        except Exception:
            _LOG.exception("documents of an extension server could not be read", extra={"apiservice": server.name})
            return
        self.generation += any(changed)

    async def _fetched(self, server: ExtensionServer, path: str, **options: str) -> Fetched:
        return await server.fetch(self._aggregation.outbound, path, user=_USER, seconds=_LONGEST, **options)

    async def _fetch_index(self, server: ExtensionServer, kept: _Kept) -> bool:
        """Whether the index of the newer form is another one now."""
        if not kept.has_newer:
            return False
        fetched = await self._fetched(server, "/openapi/v3")
        if fetched.code == 404:
            # It is never asked for again: such a server is an old one.
            kept.has_newer, kept.tag, kept.mark = False, "", ""
        tree = _tree(fetched) or {}
        if not isinstance(tree.get("paths"), dict):
            return False
        found = {path: str((item or {}).get("serverRelativeURL") or "") for path, item in tree["paths"].items()}
        before, kept.index = kept.index, found
        return before != found

    async def _fetch_old(self, server: ExtensionServer, kept: _Kept) -> bool:
        """Whether the older document is another one now."""
        fetched = await self._fetched(server, "/openapi/v2", accept="application/json", tag=kept.tag)
        mark = hashlib.sha512(fetched.body).hexdigest().upper()
        if mark == kept.mark:
            return False
        document = _tree(fetched)
        if document is None:
            return False
        kept.tag = fetched.tag
        below = f"{server.path}/"
        kept.mark = mark
        kept.old = part_of(document, lambda path: path.startswith(below))
        kept.upgraded = None if kept.has_newer else upgraded_document(document)
        return True


def _tree(fetched: Fetched) -> Tree | None:
    if fetched.code != 200:
        return None
    try:
        tree = decode_json(fetched.body)
    except StatusError:
        return None
    return tree if isinstance(tree, dict) else None
