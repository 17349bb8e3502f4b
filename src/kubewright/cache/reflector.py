"""Reflector: list and watch one kind, in one namespace or in all, for ever; as client-go's tools/cache/reflector.go.

    how a watch ends                      what follows
    closed, cut or silent                 a watch from the last version; at once if it lasted a second or had events
    refused, 429, 5xx                     the same after a back-off, 0.8 s doubling to 30 s with jitter
    410, version too large                a list at the last version or later; if that fails, too, at the newest
    403                                   reported at once, tried again every 2 to 10 s
    404                                   the same, then a list: the CRD may have been deleted with all objects
    unreadable line                       a watch from the last version, which did not advance; the third time a list
    no event in less than a second        counts as a failure

The list is a streaming one (WatchList) where the server supports it, else page by page. One task, owned by the
informer, which is its handler; it ends by being cancelled. Whatever goes wrong is a `problem` with a sentence, and
tried again.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from random import Random
from typing import Protocol, final

import msgspec

from kubewright._base.backoff import Backoff
from kubewright._base.clock import Clock
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.deadline import Deadline
from kubewright.cache.decoder import ErrorEvent, EventDecoder, ObjectEvent
from kubewright.cache.observer import CacheObserver
from kubewright.cache.pager import ListResult, list_entries
from kubewright.cache.problems import Problem, is_lasting, sentence_for
from kubewright.cache.scope import Scope
from kubewright.cache.store import Entry
from kubewright.cache.versions import Version, is_newer, parse_version
from kubewright.client.client import Client
from kubewright.client.watch import Bookmark, RawEvents
from kubewright.errors import (
    ApiError,
    BadRequest,
    DecodeError,
    Expired,
    Forbidden,
    Invalid,
    KubewrightError,
    NotFound,
    RequestTimeout,
    ServerTimeout,
    TransportError,
)

__all__ = ("Reflector", "ReflectorHandler")

IDLE_SECONDS = 150.0
"""A watch that is silent for so long is closed and resumed. Servers send a bookmark about once a minute."""
STALL_SECONDS = 240.0
"""A reflector that has neither received anything nor tried to for so long is stuck."""
_INITIAL_EVENTS_IDLE = 10.0
"""How long a streaming list may pause before the server counts as not supporting it."""
_INITIAL_EVENTS_LIMIT = 300.0
"""How long a streaming list may take in all."""
_SHORT_WATCH = 1.0
_WATCH_SECONDS = (300.0, 600.0)
"""The timeout of a watch request; random as in client-go, so that not all clients reconnect together."""
_UNREADABLE_LIMIT = 3
_FAILURES_BEFORE_LIST = 5
"""A server that fails a watch so often in a row may not know its version any more; a list starts afresh."""

_log = logging.getLogger("kubewright.cache")


class ReflectorHandler(Protocol):
    """Stores what a reflector receives; implemented by the informer."""

    async def on_list(self, namespace: str, items: dict[ObjectKey, Entry], version: Version) -> None:
        """A list has everything there is."""
        ...

    def on_event(self, event: ObjectEvent) -> None:
        """A watch shows that one object was added, modified or deleted."""
        ...

    def on_progress(self, namespace: str, version: Version) -> None:
        """The watch has shown everything up to this version: after a batch of events, and for a bookmark."""
        ...

    def on_rollback(self) -> None:
        """The server's history is shorter than it was: etcd was restored from a backup. A list follows."""
        ...

    def on_malformed(self, error: DecodeError) -> None:
        """An object cannot be stored."""
        ...


@final
class Reflector:
    """One list and watch, for ever."""

    def __init__(
        self,
        client: Client,
        kind: type[KubeObject],
        handler: ReflectorHandler,
        *,
        namespace: str,
        scope: Scope,
        clock: Clock,
        rng: Random,
        observer: CacheObserver,
    ) -> None:
        self.namespace = namespace
        self.problem: Problem | None = None
        self.version = ""
        """The last version seen; empty before the first list."""
        self._client = client
        self._kind = kind
        self._definition = definition_of(kind)
        self._handler = handler
        self._scope = scope
        self._decoder = EventDecoder(self._definition, scope)
        self._clock = clock
        self._rng = rng
        self._observer = observer
        self._backoff = Backoff(clock=clock, rng=rng)
        # For errors that a person has to mend, such as a missing CRD or permission: notice it within seconds, and send
        # few requests until then.
        self._lasting_backoff = Backoff(clock=clock, rng=rng, initial=2.0, cap=10.0, factor=1.2, jitter=0.1)
        self._last_heard = self._last_active = clock.monotonic()
        self._list_reason = "first"
        """Why the next turn begins with a list; empty if it resumes the watch."""
        self._list_not_older_than = ""
        self._supports_watch_list = True
        self._verb = "list"
        self._events = 0
        self._failures = 0
        self._unreadable = 0

    def age(self) -> float:
        """Seconds since the last byte from the server."""
        return self._clock.monotonic() - self._last_heard

    def stalled(self) -> bool:
        """Whether the reflector has neither received nor tried anything for longer than it should ever take."""
        return self._clock.monotonic() - self._last_active > STALL_SECONDS

    async def run(self) -> None:
        """List and watch, again and again, until cancelled."""
        self._mark_heard()
        while True:
            began = self._clock.monotonic()
            self._events = 0
            self._last_active = began
            error: KubewrightError | None = None
            try:
                await self._list_and_watch()
            except (ApiError, TransportError, DecodeError) as exc:
                error = exc
            self._last_active = self._clock.monotonic()
            lasted = self._events > 0 or self._last_active - began >= _SHORT_WATCH
            delay = self._next_delay(error, lasted)
            self._observer.on_watch_end(self._kind, type(error).__name__.lstrip("_") if error else "closed")
            if delay > 0:
                await self._clock.sleep(delay)

    # --- one turn ---

    async def _list_and_watch(self) -> None:
        """A list if one is needed, then one watch to its end."""
        if self._list_reason:
            if self._supports_watch_list and await self._watch_list():
                return
            self._verb = "list"
            result = await list_entries(
                self._client,
                self._kind,
                self._decoder,
                namespace=self.namespace,
                scope=self._scope,
                not_older_than=self._list_not_older_than,
                on_malformed=self._handler.on_malformed,
            )
            self._mark_heard()
            await self._replace(result)
        self._verb = "watch"
        await self._watch(initial_events=False)

    async def _watch_list(self) -> bool:
        """List and go on watching over one connection; False if the server does not support that.

        A watch with sendInitialEvents=true sends every object as an ADDED event, a bookmark that ends the list, and
        then the changes (KEP-3157, WatchList; client-go: watchList in tools/cache/reflector.go). It needs neither the
        server nor the client to hold the list as one document. Servers before 1.32 and aggregated ones may answer 400
        or 422, or ignore the parameter: then the bookmark never comes.
        """
        self._verb = "watch"
        try:
            await self._watch(initial_events=True)
        except (BadRequest, Invalid, _NoInitialEventsEnd) as exc:
            if not self._list_reason:
                raise
            self._supports_watch_list = False
            _log.debug("%s: no streaming list, listing instead: %s", self._definition.kind, exc)
            return False
        except Forbidden:
            return False  # a role may allow `list` and not `watch`; the answer to the list names what is missing
        return True

    async def _watch(self, *, initial_events: bool) -> None:
        request = self._client.watch(
            self._kind,
            namespace=self.namespace or None,
            labels=self._scope.labels or None,
            fields=self._scope.fields or None,
            resource_version=self._list_not_older_than if initial_events else self.version,
            initial_events=initial_events,
            bookmarks=True,
            timeout=self._rng.uniform(*_WATCH_SECONDS),
            idle_timeout=IDLE_SECONDS,
        )
        async with request.raw() as events, aclosing(events.batches()) as batches:
            self._mark_heard()
            if initial_events:
                await self._read_initial_events(batches, events)
            else:
                self._clear_problem()
            if not self._list_reason:
                await self._read_events(batches, events)

    async def _read_initial_events(self, batches: AsyncIterator[list[bytes]], events: RawEvents) -> None:
        """Read up to the bookmark that ends the initial events, or to the end of the stream."""
        items: dict[ObjectKey, Entry] = {}
        version: str | None = None
        rest: list[bytes] = []
        end = self._clock.monotonic() + _INITIAL_EVENTS_LIMIT
        try:
            async with Deadline(
                self._clock, _INITIAL_EVENTS_IDLE, f"no list of {self._definition.kind} came"
            ) as deadline:
                async for lines in batches:
                    self._mark_heard()
                    if lines and self._clock.monotonic() < end:
                        deadline.extend(_INITIAL_EVENTS_IDLE)
                    version, rest = self._collect_initial_events(items, lines, events)
                    if version is not None:
                        break
        except RequestTimeout as exc:
            raise _NoInitialEventsEnd(str(exc)) from exc
        if version is not None:
            await self._replace(ListResult(items, version))
            self._clear_problem()
            self._handle(rest, events)

    async def _read_events(self, batches: AsyncIterator[list[bytes]], events: RawEvents) -> None:
        sentence = f"the watch of {self._definition.kind} was silent for {IDLE_SECONDS:g} s"
        async with Deadline(self._clock, IDLE_SECONDS, sentence) as deadline:
            async for lines in batches:
                self._mark_heard()
                deadline.extend(IDLE_SECONDS)
                self._handle(lines, events)

    def _collect_initial_events(
        self, items: dict[ObjectKey, Entry], lines: list[bytes], events: RawEvents
    ) -> tuple[str | None, list[bytes]]:
        """Add events of a streaming list to `items`; at its end, returns its version and the lines that follow."""
        for position, line in enumerate(lines):
            event = self._decode(line)
            if isinstance(event, ObjectEvent):
                if event.type == "DELETED":
                    items.pop(event.key, None)
                else:
                    items[event.key] = event.entry
            elif isinstance(event, ErrorEvent):
                raise events.error_from(event.status)
            elif event is not None and event.initial_events_end:
                return event.resource_version, lines[position + 1 :]
        return None, []

    def _handle(self, lines: list[bytes], events: RawEvents) -> None:  # hot
        count, version = 0, self.version
        try:
            for line in lines:
                event = self._decode(line)
                if isinstance(event, ObjectEvent):
                    self._handler.on_event(event)
                    version = event.version
                    count += 1
                elif isinstance(event, Bookmark):
                    # Nothing changed here, but the version moves on with other kinds. Without bookmarks a quiet kind
                    # would resume from a version that etcd has compacted, and have to relist (KEP-956).
                    version = event.resource_version
                elif event is not None:
                    raise events.error_from(event.status)
            self._unreadable = 0
        finally:
            # Also after an error in the middle: the watch resumes from the last event that was handled, so that none is
            # lost and none is handled twice.
            if version != self.version:
                self.version = version
                self._handler.on_progress(self.namespace, parse_version(version))
            if count:
                self._events += count
                self._observer.on_events(self._kind, count)

    def _decode(self, line: bytes) -> ObjectEvent | Bookmark | ErrorEvent | None:  # hot
        try:
            return self._decoder.decode_event(line)
        except DecodeError as exc:
            self._handler.on_malformed(exc)
            return None
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            # The object of this event is not known, so the watch cannot go on without losing a change.
            raise _Unreadable(f"an event of {self._definition.kind} is not readable: {exc}") from exc

    async def _replace(self, result: ListResult) -> None:
        """Replace what is known of the kind with a list; the handler finds what was deleted by comparing the two."""
        version = parse_version(result.version)
        if self.version and is_newer(parse_version(self.version), version) and isinstance(version, int):
            # The list is older than what was seen. If it was asked for at the seen version or later, a stale replica
            # behind a load balancer answered: try again. If it was asked for at the newest, this is the newest: etcd
            # was restored from a backup, and waiting would never end.
            if self._list_not_older_than:
                raise ServerTimeout(
                    f"the list of {self._definition.plural} has version {version}, but {self.version} was seen before",
                    code=504,
                    reason="Timeout",
                )
            _log.warning(
                "%s: the server's history went back from version %s to %s; replacing everything with its list",
                self._definition.kind, self.version, version,
            )  # fmt: skip
            self._handler.on_rollback()
        await self._handler.on_list(self.namespace, result.items, version)
        self._observer.on_list(self._kind, self._list_reason)
        self.version = result.version
        self._list_reason = self._list_not_older_than = ""

    # --- what comes next ---

    def _next_delay(self, error: KubewrightError | None, lasted: bool) -> float:
        """Decide from the end of a turn how the next one begins, and return the seconds to wait before."""
        if isinstance(error, Expired | ServerTimeout) and (isinstance(error, Expired) or self._list_not_older_than):
            return self._after_expiry(lasted)
        if error is not None and _is_too_large(error):
            return self._after_expiry(lasted)
        if error is not None and is_lasting(error):
            if isinstance(error, NotFound) and self.version and self._list_reason != "missing":
                # The CRD may be deleted, which ends its watches, too: report it only if the list fails as well.
                self._list_reason, self._list_not_older_than = "missing", ""
            else:
                self._report(error)
            return self._lasting_backoff.next_delay()
        broken = error is None or (
            isinstance(error, TransportError | DecodeError) and not isinstance(error, _Unreadable)
        )
        if broken and lasted and not self._list_reason:
            self._failures = 0
            self._backoff.reset()
            return 0.0
        return self._after_failure(error)

    def _after_expiry(self, lasted: bool) -> float:
        """410 Gone, or a version the server does not have yet: the watch cannot be resumed, so relist.

        First at the last version or later: the API server may answer that from its watch cache, and the store never
        goes back. If that fails as well, at the newest version, which may cost a quorum read of etcd. client-go does
        the same (relistResourceVersion in tools/cache/reflector.go).
        """
        if self._list_reason:
            immediately = bool(self._list_not_older_than)
            self._list_not_older_than = ""
            return 0.0 if immediately else self._backoff.next_delay()
        self._list_reason, self._list_not_older_than = "expired", self.version
        return 0.0 if lasted else self._backoff.next_delay()

    def _after_failure(self, error: KubewrightError | None) -> float:
        self._failures += 1
        if isinstance(error, _Unreadable):
            self._unreadable += 1
        unreadable = self._unreadable >= _UNREADABLE_LIMIT
        failing = isinstance(error, ApiError) and error.code != 429 and self._failures >= _FAILURES_BEFORE_LIST
        if (unreadable or failing) and not self._list_reason:
            self._unreadable = 0
            self._list_reason = "unreadable" if unreadable else "failing"
            self._list_not_older_than = self.version
        if error is not None and self._failures > 1:
            self._report(error)
        retry_after = error.retry_after if isinstance(error, ApiError) else None
        return max(self._backoff.next_delay(), retry_after or 0.0)

    def _report(self, error: KubewrightError) -> None:
        sentence = sentence_for(error, self._definition, verb=self._verb, namespace=self.namespace)
        if self.problem is not None and self.problem.sentence == sentence:
            return
        since = self._clock.now() if self.problem is None else self.problem.since
        self.problem = Problem(kind=self._kind, sentence=sentence, since=since)
        _log.warning("%s", sentence)

    def _clear_problem(self) -> None:
        self._lasting_backoff.reset()
        if self.problem is not None:
            self.problem = None
            _log.info("%s is being watched now", self._definition.kind)

    def _mark_heard(self) -> None:  # hot
        self._last_heard = self._last_active = self._clock.monotonic()


class _NoInitialEventsEnd(RequestTimeout):
    """The bookmark that ends a streaming list did not come in time."""


class _Unreadable(DecodeError):
    """A line of a watch that is no event."""


def _is_too_large(error: KubewrightError) -> bool:
    """Whether the server has not reached the version yet: another server behind the same address was ahead."""
    return isinstance(error, ServerTimeout) and any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
