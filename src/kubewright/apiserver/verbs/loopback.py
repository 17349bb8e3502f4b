"""Writes the server makes on its own behalf, through the same steps as anybody's.

`TableController` is how it learns that there is something to write: it watches a table, remembers the keys that
changed, and hands them out to a task, since nothing may be written from within a write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, final

from kubewright._base.tasks import cancel_and_wait
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.storage.store import Change, Store
from kubewright.apiserver.wire.negotiation import APPLY_YAML, MediaType
from kubewright.apiserver.wire.requests import Peer, Request, RequestInfo
from kubewright.apiserver.wire.responses import encode_json
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.apiserver.wire.users import User

__all__ = ("TableController", "loopback_call", "resource_of")

_SELF: Final = User("system:apiserver", ("system:masters", "system:authenticated"))
_LOG: Final = logging.getLogger(__name__)


def resource_of(catalog: Catalog, group: str, plural: str) -> Resource:
    """A built-in resource, which is always there."""
    found = catalog.find(group, "v1", plural)
    assert found is not None
    return found


def loopback_call(
    resource: Resource,
    key: str,
    *,
    verb: str,
    manager: str,
    tree: Mapping[str, Any] | None = None,
    content_type: str = APPLY_YAML,
    query: Mapping[str, str] | None = None,
) -> Call:
    """A call by the server itself about one object."""
    namespace, _, name = key.rpartition("/")
    kind = resource.kind
    target = RequestInfo(verb, "", kind.group, kind.version, resource.plural, "", namespace, name)
    headers = {"user-agent": manager, "content-type": content_type}
    body = encode_json(tree) if tree is not None else b""
    return Call(Request("", "", query or {}, headers, body, Peer()), target, resource, _SELF, MediaType())


@final
class TableController:
    """Calls `handle` with the keys of objects of a table that were written or deleted, soon but later."""

    def __init__(self, store: Store, table: str, handle: Callable[[tuple[str, ...]], Awaitable[None]]) -> None:
        self._table = store.table(table)
        self._handle = handle
        self._waiting: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._leave: Callable[[], None] | None = None

    def start(self) -> None:
        """Follow from now on; what is there already is handed out first."""
        self._leave = self._table.watch(self)
        for entry in self._table.entries():
            self.add(entry.key)
        self._task = asyncio.create_task(self._run(), name=f"follow {self._table.name}")

    async def stop(self) -> None:
        """Follow no more."""
        if self._leave is not None:
            self._leave()
        if self._task is not None:
            await cancel_and_wait(self._task)
            self._task = None

    @property
    def running(self) -> bool:
        """Whether it follows."""
        return self._task is not None and not self._task.done()

    def add(self, key: str) -> None:
        """Hand out this key, too."""
        self._waiting[key] = None
        self._wake.set()

    def deliver(self, change: Change) -> None:
        """An object was written or deleted."""
        self.add(change.key)

    def table_gone(self) -> None:
        """Built-in tables stay."""

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            keys = tuple(self._waiting)
            self._waiting.clear()
            try:
                await self._handle(keys)
            except StatusError as exc:
                # An object changed under us, and that change is the next to be handed out.
                _LOG.debug("a write of the server's own was refused", extra={"keys": keys, "why": str(exc)})
            except Exception:
                _LOG.exception("a change could not be followed up", extra={"keys": keys})
            await asyncio.sleep(0)  # a handler that never waits must not keep everybody else from their turn
