"""EventCorrelator: which occurrences are one event. Repetitions become a series, floods are cut.

The rules and numbers are those of client-go's tools/record/events_cache.go: the same event about the same object again
is one event with a count; ten different notes with one reason within ten minutes are aggregated into one; and a source
may write 25 events about an object, then one in five minutes. Pure bookkeeping for `event_recorder`, no I/O.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeVar, final

import msgspec

from kubewright._base.clock import Clock
from kubewright.k8s.core.v1 import ObjectReference

__all__ = ("EventCorrelator", "Occurrence", "Series")

SERIES_END: Final = 360.0
"""Seconds without a repetition after which the next one is a new event (client-go: tools/events, finishTime)."""
AGGREGATE_MAX_EVENTS: Final = 10
AGGREGATE_INTERVAL: Final = 600.0
SPAM_BURST: Final = 25
SPAM_REFILL_SECONDS: Final = 300.0
MAX_ENTRIES: Final = 4096
V = TypeVar("V")

AGGREGATE_PREFIX: Final = "(combined from similar events): "


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """One call of `EventRecorder.record`."""

    regarding: ObjectReference
    type: str
    reason: str
    action: str
    note: str
    related: ObjectReference | None = None

    @property
    def spam_key(self) -> tuple[str, ...]:
        """What the rate limit counts by: the object."""
        return _identity(self.regarding)

    @property
    def aggregate_key(self) -> tuple[str, ...]:
        """What makes two occurrences similar: all but the note."""
        related = _identity(self.related) if self.related is not None else ()
        return (self.type, self.reason, self.action, *self.spam_key, *related)


def _identity(reference: ObjectReference) -> tuple[str, ...]:
    parts = (reference.api_version, reference.kind, reference.namespace, reference.name, reference.uid)
    return tuple(part or "" for part in parts)


@final
class Series:
    """An event and how often it occurred."""

    __slots__ = (
        "aggregated",
        "count",
        "created",
        "first",
        "first_at",
        "last_at",
        "name",
        "queued",
        "seen_on_server",
        "tries",
    )

    def __init__(self, first: Occurrence, now: float, *, aggregated: bool) -> None:
        self.first = first
        self.aggregated = aggregated
        self.count = 1
        self.first_at = now
        self.last_at = now
        self.name = ""
        self.created = False
        """Whether the server has an event of that name."""
        self.seen_on_server = 0
        """The count in the server's event."""
        self.queued = False
        self.tries = 0

    @property
    def note(self) -> str:
        return f"{AGGREGATE_PREFIX}{self.first.note}" if self.aggregated else self.first.note


@final
class EventCorrelator:
    """The recent events of one source."""

    def __init__(self, *, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._series: OrderedDict[tuple[str, ...], Series] = OrderedDict()
        self._notes: OrderedDict[tuple[str, ...], tuple[float, set[str]]] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()

    def add(self, occurrence: Occurrence) -> tuple[Series, bool]:
        """Count an occurrence; returns the series it belongs to, and whether to write the series now.

        A new event is written, and of its repetitions the 2nd, 4th, 8th and so on: a busy series costs few requests,
        and the count on the server is never less than half of the true one.
        """
        now = self._monotonic()
        aggregated = self._should_aggregate(occurrence, now)
        key = occurrence.aggregate_key if aggregated else (*occurrence.aggregate_key, occurrence.note)
        series = self._series.get(key)
        if series is None or now - series.last_at > SERIES_END:
            series = Series(occurrence, now, aggregated=aggregated)
            self._series[key] = series
        else:
            series.count += 1
            series.last_at = now
        self._series.move_to_end(key)
        _bound(self._series)
        return series, series.count & (series.count - 1) == 0

    def unfinished(self) -> list[Series]:
        """The series whose last count is not on the server."""
        return [series for series in self._series.values() if series.seen_on_server < series.count]

    def may_write(self, occurrence: Occurrence) -> bool:
        """Take a token from the object's bucket, if there is one."""
        now = self._monotonic()
        key = occurrence.spam_key
        tokens, since = self._buckets.pop(key, (float(SPAM_BURST), now))
        tokens = min(float(SPAM_BURST), tokens + (now - since) / SPAM_REFILL_SECONDS)
        allowed = tokens >= 1.0
        self._buckets[key] = (tokens - 1.0 if allowed else tokens, now)
        _bound(self._buckets)
        return allowed

    def _should_aggregate(self, occurrence: Occurrence, now: float) -> bool:
        since, notes = self._notes.pop(occurrence.aggregate_key, (now, set[str]()))
        if now - since > AGGREGATE_INTERVAL:
            since, notes = now, set()
        known = occurrence.note in notes
        many = len(notes) >= AGGREGATE_MAX_EVENTS - 1 and not known
        if not many:
            notes.add(occurrence.note)
        self._notes[occurrence.aggregate_key] = (since, notes)
        _bound(self._notes)
        return many


def _bound(memory: OrderedDict[tuple[str, ...], V]) -> None:
    while len(memory) > MAX_ENTRIES:
        memory.popitem(last=False)
