"""Which events are one: repetitions become a series, floods are cut.

Pure bookkeeping for `recorder`, no I/O. The same thing said again about the same object is one event with a count.
Ten different notes with one reason within ten minutes are taken together. And each source may write 25 times
about an object, then once in five minutes.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeVar, final

import msgspec

from kubewright._base.clock import Clock
from kubewright.k8s.core.v1 import ObjectReference

__all__ = ("EventCorrelator", "Occurrence", "Series")

SERIES_END: Final = 360.0
"""Seconds of silence after which a repetition is a new event."""
SIMILAR_NOTES: Final = 10
SIMILAR_WITHIN: Final = 600.0
BURST: Final = 25
REFILL_SECONDS: Final = 300.0
REMEMBERED: Final = 4096
V = TypeVar("V")

COMBINED: Final = "(combined from similar events): "


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was said once."""

    regarding: ObjectReference
    type: str
    reason: str
    action: str
    note: str
    related: ObjectReference | None = None

    @property
    def about(self) -> tuple[str, ...]:
        return _identity(self.regarding)

    @property
    def saying(self) -> tuple[str, ...]:
        """What makes two occurrences similar: all but the note."""
        related = _identity(self.related) if self.related is not None else ()
        return (self.type, self.reason, self.action, *self.about, *related)


def _identity(reference: ObjectReference) -> tuple[str, ...]:
    parts = (reference.api_version, reference.kind, reference.namespace, reference.name, reference.uid)
    return tuple(part or "" for part in parts)


@final
class Series:
    """An event and how often it occurred."""

    __slots__ = (
        "combined",
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

    def __init__(self, first: Occurrence, now: float, *, combined: bool) -> None:
        self.first = first
        self.combined = combined
        self.count = 1
        self.first_at = now
        self.last_at = now
        self.name = ""
        self.created = False
        """Whether the server has an event of that name."""
        self.seen_on_server = 0
        """The count the server knows."""
        self.queued = False
        self.tries = 0

    @property
    def note(self) -> str:
        return f"{COMBINED}{self.first.note}" if self.combined else self.first.note


@final
class EventCorrelator:
    """What one source has said lately."""

    def __init__(self, *, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._series: OrderedDict[tuple[str, ...], Series] = OrderedDict()
        self._notes: OrderedDict[tuple[str, ...], tuple[float, set[str]]] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()

    def add(self, occurrence: Occurrence) -> tuple[Series, bool]:
        """Count it; the series it belongs to, and whether the server should hear of it now.

        A new event is to be written; of its repetitions the 2nd, 4th, 8th and so on: a busy series costs little, and
        the count shown is never less than half of the truth.
        """
        now = self._monotonic()
        combined = self._many_notes(occurrence, now)
        key = occurrence.saying if combined else (*occurrence.saying, occurrence.note)
        series = self._series.get(key)
        if series is None or now - series.last_at > SERIES_END:
            series = Series(occurrence, now, combined=combined)
            self._series[key] = series
        else:
            series.count += 1
            series.last_at = now
        self._series.move_to_end(key)
        _bound(self._series)
        return series, series.count & (series.count - 1) == 0

    def unfinished(self) -> list[Series]:
        """The series whose last count the server does not know."""
        return [series for series in self._series.values() if series.seen_on_server < series.count]

    def may_write(self, occurrence: Occurrence) -> bool:
        """Take a token of this object's bucket, if there is one."""
        now = self._monotonic()
        key = occurrence.about
        tokens, since = self._buckets.pop(key, (float(BURST), now))
        tokens = min(float(BURST), tokens + (now - since) / REFILL_SECONDS)
        allowed = tokens >= 1.0
        self._buckets[key] = (tokens - 1.0 if allowed else tokens, now)
        _bound(self._buckets)
        return allowed

    def _many_notes(self, occurrence: Occurrence, now: float) -> bool:
        since, notes = self._notes.pop(occurrence.saying, (now, set[str]()))
        if now - since > SIMILAR_WITHIN:
            since, notes = now, set()
        known = occurrence.note in notes
        many = len(notes) >= SIMILAR_NOTES - 1 and not known
        if not many:
            notes.add(occurrence.note)
        self._notes[occurrence.saying] = (since, notes)
        _bound(self._notes)
        return many


def _bound(memory: OrderedDict[tuple[str, ...], V]) -> None:
    while len(memory) > REMEMBERED:
        memory.popitem(last=False)
