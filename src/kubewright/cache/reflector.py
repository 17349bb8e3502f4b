"""Reflector: keep a view in step with the server, for one kind in one namespace or in all. List, watch, resume, relist.

    how a watch ends                      what follows
    closed, cut or silent                 another from the last version, no list; at once if it lived or brought news
    refused, 429, 5xx                     the same after a back-off of its own, 0.8 s doubling to 30 s with jitter
    410, version too large                a list at the last version or later; if that fails, too, at the newest
    403                                   reported at once, tried again every 2 to 10 s
    404                                   the same, then a list: what was known of the kind may all be gone
    unreadable                            another from the last version, which was not advanced; the third time a list
    over in less than a second, empty     counts as a failure

The list is a streaming one where the server has it, else page by page; that a server has none is remembered. One task,
owned by the informer; it ends by being cancelled. Whatever goes wrong is a `problem` with a sentence, and tried again.
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
from kubewright.cache.decoder import Bookmark, ErrorEvent, EventDecoder, ObjectEvent
from kubewright.cache.observer import CacheObserver
from kubewright.cache.pager import ListResult, list_entries
from kubewright.cache.problems import Problem, is_lasting, sentence_for
from kubewright.cache.scope import Scope
from kubewright.cache.store import Entry
from kubewright.cache.versions import Version, is_newer, parse_version
from kubewright.client.client import Client
from kubewright.client.watch import RawEvents
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
"""A watch that is silent for so long is cut and resumed. Servers send a bookmark about once a minute."""
STALL_SECONDS = 240.0
"""A reflector that has neither heard from the server nor tried to for so long is stuck."""
_LIST_SILENCE = 10.0
"""How long a streaming list may pause before it counts as not offered."""
_LIST_LIMIT = 300.0
"""How long a streaming list may take in all."""
_SHORT_WATCH = 1.0
_WATCH_SECONDS = (300.0, 600.0)
"""After how long the server is asked to end a watch; spread, so that not all clients return together."""
_UNREADABLE_LIMIT = 3
_FAILURES_BEFORE_LIST = 5
"""A server that fails a watch so often in a row may have lost track of its version; listing starts afresh."""

_log = logging.getLogger("kubewright.cache")


class ReflectorHandler(Protocol):
    """Where a reflector puts what it learns. Implemented by the informer."""

    async def listed(self, namespace: str, items: dict[ObjectKey, Entry], version: Version) -> None:
        """Everything there is."""
        ...

    def shown(self, event: ObjectEvent) -> None:
        """One object came, changed or went."""
        ...

    def reached(self, namespace: str, version: Version) -> None:
        """Everything up to this version has been shown."""
        ...

    def went_back(self) -> None:
        """The server's history is shorter than it was: it was restored from a backup."""
        ...

    def malformed(self, error: DecodeError) -> None:
        """An object cannot be kept."""
        ...


@final
class Reflector:
    """One list and watch, for ever."""

    def __init__(
        self,
        client: Client,
        kind: type[KubeObject],
        sink: ReflectorHandler,
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
        self._sink = sink
        self._scope = scope
        self._wire = EventDecoder(self._definition, scope)
        self._clock = clock
        self._rng = rng
        self._observer = observer
        self._backoff = Backoff(clock=clock, rng=rng)
        # Somebody is going to install or grant something: be there soon after, without hammering meanwhile.
        self._patience = Backoff(clock=clock, rng=rng, initial=2.0, cap=10.0, factor=1.2, jitter=0.1)
        self._heard = self._active = clock.monotonic()
        self._list_reason = "first"
        self._list_from = ""
        self._streams_lists = True
        self._verb = "list"
        self._events = 0
        self._failures = 0
        self._unreadable = 0

    def age(self) -> float:
        """Seconds since the server was last heard."""
        return self._clock.monotonic() - self._heard

    def stalled(self) -> bool:
        """Whether nothing has been heard or tried for longer than is ever right."""
        return self._clock.monotonic() - self._active > STALL_SECONDS

    async def run(self) -> None:
        """List, watch and start over until cancelled."""
        self._hear()
        while True:
            began = self._clock.monotonic()
            self._events = 0
            self._active = began
            error: KubewrightError | None = None
            try:
                await self._follow()
            except (ApiError, TransportError, DecodeError) as exc:
                error = exc
            self._active = self._clock.monotonic()
            lived = self._events > 0 or self._active - began >= _SHORT_WATCH
            delay = self._next_delay(error, lived)
            self._observer.on_watch_end(self._kind, type(error).__name__.lstrip("_") if error else "closed")
            if delay > 0:
                await self._clock.sleep(delay)

    # --- one turn ---

    async def _follow(self) -> None:
        """A list if one is needed, then one watch to its end."""
        if self._list_reason:
            if self._streams_lists and await self._stream_list():
                return
            self._verb = "list"
            listing = await list_entries(
                self._client,
                self._kind,
                self._wire,
                namespace=self.namespace,
                scope=self._scope,
                not_older_than=self._list_from,
                on_malformed=self._sink.malformed,
            )
            self._hear()
            await self._take(listing)
        self._verb = "watch"
        await self._watch(streams_list=False)

    async def _stream_list(self) -> bool:
        """List and go on watching over one connection; False if the server does not do that."""
        self._verb = "watch"
        try:
            await self._watch(streams_list=True)
        except (BadRequest, Invalid, _NoListEnd) as exc:
            if not self._list_reason:
                raise
            self._streams_lists = False
            _log.debug("%s: no streaming list, listing instead: %s", self._definition.kind, exc)
            return False
        except Forbidden:
            return False  # a role may allow to list and not to watch; the answer to the list then says what is missing
        return True

    async def _watch(self, *, streams_list: bool) -> None:
        request = self._client.watch(
            self._kind,
            namespace=self.namespace or None,
            labels=self._scope.labels or None,
            fields=self._scope.fields or None,
            resource_version=self._list_from if streams_list else self.version,
            initial_events=streams_list,
            bookmarks=True,
            timeout=self._rng.uniform(*_WATCH_SECONDS),
            idle_timeout=IDLE_SECONDS,
        )
        async with request.raw() as events, aclosing(events.batches()) as batches:
            self._hear()
            if streams_list:
                await self._read_list(batches, events)
            else:
                self._works()
            if not self._list_reason:
                await self._read(batches, events)

    async def _read_list(self, batches: AsyncIterator[list[bytes]], events: RawEvents) -> None:
        """Up to the bookmark that ends a streaming list, or the end of the stream."""
        items: dict[ObjectKey, Entry] = {}
        version: str | None = None
        rest: list[bytes] = []
        end = self._clock.monotonic() + _LIST_LIMIT
        try:
            async with Deadline(self._clock, _LIST_SILENCE, f"no list of {self._definition.kind} came") as deadline:
                async for lines in batches:
                    self._hear()
                    if lines and self._clock.monotonic() < end:
                        deadline.extend(_LIST_SILENCE)
                    version, rest = self._collect(items, lines, events)
                    if version is not None:
                        break
        except RequestTimeout as exc:
            raise _NoListEnd(str(exc)) from exc
        if version is not None:
            await self._take(ListResult(items, version))
            self._works()
            self._apply(rest, events)

    async def _read(self, batches: AsyncIterator[list[bytes]], events: RawEvents) -> None:
        sentence = f"the watch of {self._definition.kind} was silent for {IDLE_SECONDS:g} s"
        async with Deadline(self._clock, IDLE_SECONDS, sentence) as deadline:
            async for lines in batches:
                self._hear()
                deadline.extend(IDLE_SECONDS)
                self._apply(lines, events)

    def _collect(
        self, items: dict[ObjectKey, Entry], lines: list[bytes], events: RawEvents
    ) -> tuple[str | None, list[bytes]]:
        """Take in events of a streaming list; once its end is there, its version and the lines that follow."""
        for position, line in enumerate(lines):
            event = self._decode(line)
            if isinstance(event, ObjectEvent):
                if event.type == "DELETED":
                    items.pop(event.key, None)
                else:
                    items[event.key] = event.entry
            elif isinstance(event, ErrorEvent):
                raise events.error_from(event.body)
            elif event is not None and event.ends_list:
                return event.version, lines[position + 1 :]
        return None, []

    def _apply(self, lines: list[bytes], events: RawEvents) -> None:  # hot
        count, version = 0, self.version
        try:
            for line in lines:
                event = self._decode(line)
                if isinstance(event, ObjectEvent):
                    self._sink.shown(event)
                    version = event.version
                    count += 1
                elif isinstance(event, Bookmark):
                    version = event.version
                elif event is not None:
                    raise events.error_from(event.body)
            self._unreadable = 0
        finally:
            if version != self.version:
                self.version = version
                self._sink.reached(self.namespace, parse_version(version))
            if count:
                self._events += count
                self._observer.on_events(self._kind, count)

    def _decode(self, line: bytes) -> ObjectEvent | Bookmark | ErrorEvent | None:  # hot
        try:
            return self._wire.event(line)
        except DecodeError as exc:
            self._sink.malformed(exc)
            return None
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            # Which object this was about is not known, so the stream cannot go on as if nothing had been lost.
            raise _Unreadable(f"an event of {self._definition.kind} is not readable: {exc}") from exc

    async def _take(self, listing: ListResult) -> None:
        version = parse_version(listing.version)
        if self.version and is_newer(parse_version(self.version), version) and isinstance(version, int):
            if self._list_from:
                raise ServerTimeout(
                    f"the list of {self._definition.plural} has version {version}, but {self.version} was seen before",
                    code=504,
                    reason="Timeout",
                )
            _log.warning(
                "%s: the server's history went back from version %s to %s; taking its word",
                self._definition.kind, self.version, version,
            )  # fmt: skip
            self._sink.went_back()
        await self._sink.listed(self.namespace, listing.items, version)
        self._observer.on_list(self._kind, self._list_reason)
        self.version = listing.version
        self._list_reason = self._list_from = ""

    # --- what comes next ---

    def _next_delay(self, error: KubewrightError | None, lived: bool) -> float:
        """Decide from the end of a turn how the next one begins, and how long to wait before."""
        if isinstance(error, Expired | ServerTimeout) and (isinstance(error, Expired) or self._list_from):
            return self._after_expiry(lived)
        if error is not None and _is_too_large(error):
            return self._after_expiry(lived)
        if error is not None and is_lasting(error):
            if isinstance(error, NotFound) and self.version and self._list_reason != "missing":
                # Whoever removed the kind may be about to end this watch, too: that is nothing to complain of.
                self._list_reason, self._list_from = "missing", ""
            else:
                self._report(error)
            return self._patience.next_delay()
        broken = error is None or (
            isinstance(error, TransportError | DecodeError) and not isinstance(error, _Unreadable)
        )
        if broken and lived and not self._list_reason:
            self._failures = 0
            self._backoff.reset()
            return 0.0
        return self._after_failure(error)

    def _after_expiry(self, lived: bool) -> float:
        if self._list_reason:
            again_at_once = bool(self._list_from)
            self._list_from = ""  # not even at that version or later: then the newest
            return 0.0 if again_at_once else self._backoff.next_delay()
        self._list_reason, self._list_from = "expired", self.version
        return 0.0 if lived else self._backoff.next_delay()

    def _after_failure(self, error: KubewrightError | None) -> float:
        self._failures += 1
        if isinstance(error, _Unreadable):
            self._unreadable += 1
        lost = self._unreadable >= _UNREADABLE_LIMIT
        refused = isinstance(error, ApiError) and error.code != 429 and self._failures >= _FAILURES_BEFORE_LIST
        if (lost or refused) and not self._list_reason:
            self._unreadable = 0
            self._list_reason, self._list_from = "unreadable" if lost else "failing", self.version
        if error is not None and self._failures > 1:
            self._report(error)
        asked = error.retry_after if isinstance(error, ApiError) else None
        return max(self._backoff.next_delay(), asked or 0.0)

    def _report(self, error: KubewrightError) -> None:
        sentence = sentence_for(error, self._definition, verb=self._verb, namespace=self.namespace)
        if self.problem is not None and self.problem.sentence == sentence:
            return
        since = self._clock.now() if self.problem is None else self.problem.since
        self.problem = Problem(kind=self._kind, sentence=sentence, since=since)
        _log.warning("%s", sentence)

    def _works(self) -> None:
        self._patience.reset()
        if self.problem is not None:
            self.problem = None
            _log.info("%s is being watched now", self._definition.kind)

    def _hear(self) -> None:  # hot
        self._heard = self._active = self._clock.monotonic()


class _NoListEnd(RequestTimeout):
    """A streaming list whose end was not announced in time."""


class _Unreadable(DecodeError):
    """A line of a watch that is no event."""


def _is_too_large(error: KubewrightError) -> bool:
    """Whether the version asked for is in the server's future: another server behind the same address was ahead."""
    return isinstance(error, ServerTimeout) and any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
