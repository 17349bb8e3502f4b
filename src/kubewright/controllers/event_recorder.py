"""EventRecorder: tell people, through Kubernetes events, what a controller did to their object.

    recorder = EventRecorder(client, controller="web")
    recorder.record(web, "Scaled", "3 replicas now")      # returns at once, whatever happens

Recording never waits and never fails a reconcile: events are best effort, written in the background by `run`, and
dropped when the server is away for long or the queue is full. `event_correlator` decides which occurrences are one
event. `Context.event` calls `record`, the manager runs it.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections import deque
from datetime import timedelta
from random import Random
from typing import Final, Literal, final

from kubewright._base.backoff import jittered
from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright._base.tasks import cancel_and_wait, within
from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.api.times import MicroTime
from kubewright.client.client import Client
from kubewright.controllers.event_correlator import EventCorrelator, Occurrence, Series
from kubewright.errors import (
    AlreadyExists,
    Forbidden,
    KubewrightError,
    NotFound,
    ServerError,
    TooManyRequests,
    TransportError,
)
from kubewright.k8s.core.v1 import ObjectReference
from kubewright.k8s.events.v1 import Event, EventSeries

__all__ = ("EventRecorder",)

# client-go: tools/events/event_broadcaster.go
_QUEUE_LENGTH: Final = 1000
_TRIES: Final = 12
_RETRY_SECONDS: Final = 10.0

_LAST_SECONDS: Final = 5.0
_LONGEST_WORD: Final = 128
_LONGEST_NOTE: Final = 1024
_LONGEST_NAME: Final = 253
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.-]")

_log = Logger("kubewright.events")


@final
class EventRecorder:
    """Records the events of one controller. A runnable: `run` writes them until it is told to stop."""

    needs_leader = False

    def __init__(
        self,
        client: Client,
        *,
        controller: str,
        instance: str | None = None,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        """`controller` and `instance` are the event's reporter; the instance is named after the host if not given."""
        self.name = f"event recorder {controller}"
        self.dropped = 0
        """How many occurrences were not written: the queue was full, a flood was cut, or the server rejected them."""
        self._client = client
        self._controller = controller
        self._instance = _cut(instance or f"{controller}-{socket.gethostname()}", _LONGEST_WORD)
        self._clock = clock or SystemClock()
        self._rng = rng or Random()
        self._correlator = EventCorrelator(clock=self._clock)
        self._queue: deque[Series] = deque()
        self._wake = asyncio.Event()
        self._stop_requested = asyncio.Event()
        self._owner: tuple[asyncio.AbstractEventLoop, int] | None = None

    def record(
        self,
        regarding: KubeObject,
        reason: str,
        note: str,
        *,
        type: Literal["Normal", "Warning"] = "Normal",  # noqa: A002 - the word Kubernetes uses
        action: str = "Reconcile",
        related: KubeObject | None = None,
    ) -> None:
        """Record that something happened to `regarding`; repetitions are counted. Call it from any thread."""
        occurrence = Occurrence(
            regarding=_reference(regarding),
            type=type,
            reason=_cut(reason, _LONGEST_WORD) or "Unknown",
            action=_cut(action, _LONGEST_WORD) or "Unknown",
            note=_cut(note, _LONGEST_NOTE - 40),  # room for the prefix of aggregated events
            related=_reference(related) if related is not None else None,
        )
        if self._owner is not None and self._owner[1] != threading.get_ident():
            self._owner[0].call_soon_threadsafe(self._add, occurrence)
        else:
            self._add(occurrence)

    def stop(self) -> None:
        """Ask `run` to write what is queued, once and within a few seconds, and to return."""
        self._stop_requested.set()

    async def run(self) -> None:
        """Write events until `stop`. Their failure is never an error here."""
        self._owner = (asyncio.get_running_loop(), threading.get_ident())
        writing = asyncio.create_task(self._write_all(), name=f"{self.name}: writing")
        stopping = asyncio.create_task(self._stop_requested.wait())
        try:
            await asyncio.wait({writing, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()  # it never returns, so this raises an unexpected error
        finally:
            stopping.cancel()
            await cancel_and_wait(writing)
        await self._write_last()

    def _add(self, occurrence: Occurrence) -> None:
        if self._stop_requested.is_set():
            self.dropped += 1
            return
        series, write = self._correlator.add(occurrence)
        if not write or series.queued:
            return
        if len(self._queue) >= _QUEUE_LENGTH or not self._correlator.may_write(occurrence):
            self.dropped += 1
            return
        series.queued = True
        self._queue.append(series)
        self._wake.set()

    async def _write_all(self) -> None:
        while True:
            while not self._queue:
                self._wake.clear()
                await self._wake.wait()
            series = self._queue[0]
            wait = await self._write(series)
            if wait is not None:
                await self._clock.sleep(wait)
                continue
            series.queued = False
            self._queue.popleft()

    async def _write_last(self) -> None:
        """Write what is left, and the final counts: one try each, within the seconds that a stop may take."""

        async def write() -> None:
            left = [*self._queue, *(series for series in self._correlator.unfinished() if series.created)]
            for series in dict.fromkeys(left):
                if await self._write(series) is not None:
                    return

        try:
            await within(write(), _LAST_SECONDS, clock=self._clock)
        except TimeoutError:
            _log.debug("events were not written in time", controller=self._controller)

    async def _write(self, series: Series) -> float | None:
        """Write one event; returns None if it is written or given up, else the seconds until the next try."""
        series.tries += 1
        try:
            await self._send(series)
        except (TransportError, ServerError, TooManyRequests) as error:
            if series.tries < _TRIES:
                return jittered(_RETRY_SECONDS, self._rng, 0.25)
            self._give_up(series, error)
        except (KubewrightError, ValueError) as error:  # the server rejects it: sending it again does not help
            self._give_up(series, error)
        series.tries = 0
        return None

    def _give_up(self, series: Series, error: Exception) -> None:
        self.dropped += 1
        # Nobody reads the events of a namespace that is terminating or gone; with pods in it there are many.
        log = _log.debug if _is_namespace_terminating(error) else _log.warning
        log(
            "an event was not written",
            controller=self._controller,
            reason=series.first.reason,
            about=f"{series.first.regarding.kind} {_key_of(series.first.regarding)}",
            error=error,
        )

    async def _send(self, series: Series) -> None:
        count = series.count
        if series.created:
            try:
                await self._client.patch_by_name(Event, self._key(series), {"series": self._series(series)})
                series.seen_on_server = count
                return
            except NotFound:  # the API server keeps events for an hour
                series.created, series.name = False, ""
        series.name = series.name or self._new_name(series)
        try:
            await self._client.create(self._event(series))
        except AlreadyExists:
            if series.tries == 1:
                raise
            # An earlier try created it and its answer was lost: nobody else uses this name. Its count is not known.
            if count > 1:
                await self._client.patch_by_name(Event, self._key(series), {"series": self._series(series)})
        series.created = True
        series.seen_on_server = count

    def _event(self, series: Series) -> Event:
        first = series.first
        return Event(
            metadata=ObjectMeta(name=series.name, namespace=_namespace_of(first)),
            action=first.action,
            event_time=self._timestamp(series.first_at),
            note=series.note,
            reason=first.reason,
            regarding=first.regarding,
            related=first.related,
            reporting_controller=self._controller,
            reporting_instance=self._instance,
            type=first.type,
            series=self._series(series) if series.count > 1 else None,
        )

    def _series(self, series: Series) -> EventSeries:
        return EventSeries(count=series.count, last_observed_time=self._timestamp(series.last_at))

    def _timestamp(self, at: float) -> MicroTime:
        """A monotonic time as a wall-clock time."""
        return MicroTime.of(self._clock.now() - timedelta(seconds=self._clock.monotonic() - at))

    def _new_name(self, series: Series) -> str:
        stem = _NOT_IN_NAMES.sub("-", (series.first.regarding.name or "").lower()).strip("-.") or "object"
        nanoseconds = int(self._clock.now().timestamp() * 1e6) * 1000 + self._rng.randrange(1000)
        suffix = f".{nanoseconds:x}"
        return stem[: _LONGEST_NAME - len(suffix)].rstrip("-.") + suffix

    def _key(self, series: Series) -> ObjectKey:
        return ObjectKey(_namespace_of(series.first), series.name)


def _is_namespace_terminating(error: Exception) -> bool:
    if isinstance(error, NotFound):
        return error.details.get("kind") == "namespaces"
    return isinstance(error, Forbidden) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def _namespace_of(occurrence: Occurrence) -> str:
    """The namespace of the event: the object's; `default` for a cluster-scoped object."""
    return occurrence.regarding.namespace or "default"


def _key_of(reference: ObjectReference) -> ObjectKey:
    return ObjectKey(reference.namespace or "", reference.name or "")


def _reference(obj: KubeObject) -> ObjectReference:
    meta = obj.metadata
    return ObjectReference(
        api_version=obj.api_version,
        kind=obj.kind,
        name=meta.name,
        namespace=meta.namespace or None,
        uid=meta.uid or None,
        resource_version=meta.resource_version or None,
    )


def _cut(text: str, limit: int) -> str:
    """At most so many bytes, which is how the API server counts."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return text
    return encoded[: limit - 3].decode("utf-8", "ignore") + "..."
