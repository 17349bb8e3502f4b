"""Recorder: tell people, through Kubernetes events, what a controller did to their object.

    recorder = Recorder(client, controller="web")
    recorder.record(web, "Scaled", "3 replicas now")      # returns at once, whatever happens

Recording never waits and never fails a reconcile: events are best effort, written in the background by `run`, and
dropped when the server is away for long or the queue is full. Which occurrences are one event is decided in `series`.
A `Context` calls `record`, the manager runs it.
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
        """`controller` and `instance` are shown as who reports; the instance is named after the host if not given."""
        self.name = f"event recorder {controller}"
        self.dropped = 0
        """How many occurrences were not written: the queue was full, a flood was cut, or the server said no."""
        self._client = client
        self._controller = controller
        self._instance = _cut(instance or f"{controller}-{socket.gethostname()}", _LONGEST_WORD)
        self._clock = clock or SystemClock()
        self._rng = rng or Random()
        self._sayings = EventCorrelator(clock=self._clock)
        self._queue: deque[Series] = deque()
        self._wake = asyncio.Event()
        self._stop_asked = asyncio.Event()
        self._home: tuple[asyncio.AbstractEventLoop, int] | None = None

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
        """Note that something happened to `regarding`; repetitions are counted. From any thread."""
        occurrence = Occurrence(
            regarding=_reference(regarding),
            type=type,
            reason=_cut(reason, _LONGEST_WORD) or "Unknown",
            action=_cut(action, _LONGEST_WORD) or "Unknown",
            note=_cut(note, _LONGEST_NOTE - 40),  # room for the words that mark combined events
            related=_reference(related) if related is not None else None,
        )
        if self._home is not None and self._home[1] != threading.get_ident():
            self._home[0].call_soon_threadsafe(self._add, occurrence)
        else:
            self._add(occurrence)

    def stop(self) -> None:
        """Ask `run` to write what is queued, once and within a few seconds, and to return."""
        self._stop_asked.set()

    async def run(self) -> None:
        """Write events until `stop`. Their failure is never an error here."""
        self._home = (asyncio.get_running_loop(), threading.get_ident())
        writing = asyncio.create_task(self._write_all(), name=f"{self.name}: writing")
        asked = asyncio.create_task(self._stop_asked.wait())
        try:
            await asyncio.wait({writing, asked}, return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()  # only ever an error nobody expected
        finally:
            asked.cancel()
            await cancel_and_wait(writing)
        await self._write_last()

    def _add(self, occurrence: Occurrence) -> None:
        if self._stop_asked.is_set():
            self.dropped += 1
            return
        series, write = self._sayings.add(occurrence)
        if not write or series.queued:
            return
        if len(self._queue) >= _QUEUE_LENGTH or not self._sayings.may_write(occurrence):
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
        """What is left, and the final counts: one try each, and only so long as somebody may wait for us."""

        async def write() -> None:
            left = [*self._queue, *(series for series in self._sayings.unfinished() if series.created)]
            for series in dict.fromkeys(left):
                if await self._write(series) is not None:
                    return

        try:
            await within(write(), _LAST_SECONDS, clock=self._clock)
        except TimeoutError:
            _log.debug("events were not written in time", controller=self._controller)

    async def _write(self, series: Series) -> float | None:
        """Write one event; None if it is settled, one way or the other, else the seconds to wait for another try."""
        series.tries += 1
        try:
            await self._send(series)
        except (TransportError, ServerError, TooManyRequests) as error:
            if series.tries < _TRIES:
                return jittered(_RETRY_SECONDS, self._rng, 0.25)
            self._give_up(series, error)
        except (KubewrightError, ValueError) as error:  # the server said no: saying it again does not help
            self._give_up(series, error)
        series.tries = 0
        return None

    def _give_up(self, series: Series, error: Exception) -> None:
        self.dropped += 1
        # Nobody reads the events of a namespace that is being deleted, or gone; with pods in it there are many.
        say = _log.debug if _namespace_is_leaving(error) else _log.warning
        say(
            "an event was not written",
            controller=self._controller,
            reason=series.first.reason,
            about=f"{series.first.regarding.kind} {_about(series.first.regarding)}",
            error=error,
        )

    async def _send(self, series: Series) -> None:
        count = series.count
        if series.created:
            try:
                await self._client.patch_by_name(Event, self._key(series), {"series": self._series(series)})
                series.seen_on_server = count
                return
            except NotFound:  # events are kept for an hour only
                series.created, series.name = False, ""
        series.name = series.name or self._new_name(series)
        try:
            await self._client.create(self._event(series))
        except AlreadyExists:
            if series.tries == 1:
                raise
            # An earlier try whose answer was lost: nobody else makes this name. What it counted is not known.
            if count > 1:
                await self._client.patch_by_name(Event, self._key(series), {"series": self._series(series)})
        series.created = True
        series.seen_on_server = count

    def _event(self, series: Series) -> Event:
        first = series.first
        return Event(
            metadata=ObjectMeta(name=series.name, namespace=_home(first)),
            action=first.action,
            event_time=self._moment(series.first_at),
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
        return EventSeries(count=series.count, last_observed_time=self._moment(series.last_at))

    def _moment(self, at: float) -> MicroTime:
        """A moment by the stopwatch as one on the calendar."""
        return MicroTime.of(self._clock.now() - timedelta(seconds=self._clock.monotonic() - at))

    def _new_name(self, series: Series) -> str:
        stem = _NOT_IN_NAMES.sub("-", (series.first.regarding.name or "").lower()).strip("-.") or "object"
        nanoseconds = int(self._clock.now().timestamp() * 1e6) * 1000 + self._rng.randrange(1000)
        suffix = f".{nanoseconds:x}"
        return stem[: _LONGEST_NAME - len(suffix)].rstrip("-.") + suffix

    def _key(self, series: Series) -> ObjectKey:
        return ObjectKey(_home(series.first), series.name)


def _namespace_is_leaving(error: Exception) -> bool:
    if isinstance(error, NotFound):
        return error.details.get("kind") == "namespaces"
    return isinstance(error, Forbidden) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def _home(occurrence: Occurrence) -> str:
    """The namespace of the event: that of the object; `default` for what lives in none."""
    return occurrence.regarding.namespace or "default"


def _about(reference: ObjectReference) -> ObjectKey:
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
    """At most that many bytes, which is how servers count."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return text
    return encoded[: limit - 3].decode("utf-8", "ignore") + "..."
