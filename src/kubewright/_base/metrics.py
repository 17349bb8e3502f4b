"""Counters, gauges and histograms, and their text for Prometheus.

    metrics = Metrics()
    adds = metrics.counter("workqueue_adds_total", "Keys added.", labels=("name",)).child("web")
    adds.inc()                                # bound once; then a call is one addition

Plain numbers without locks: only the event loop changes them, and an operator changes a dozen for every object. Each
`Metrics` is a registry of its own, so that two managers in one process do not clash. Process metrics (CPU, memory, open
files) come from prometheus-client if it is installed; no other module imports it. `kubewright.manager.telemetry`
declares the metrics.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar, cast, final

from kubewright._base.logs import Logger

__all__ = ("CONTENT_TYPE", "Counter", "Family", "Gauge", "Histogram", "Metrics")

_log = Logger("kubewright.metrics")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@final
class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:  # hot
        self.value += amount

    def samples(self) -> Iterator[tuple[str, str, float]]:
        yield "", "", self.value


@final
class Gauge:
    """A number that goes up and down."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def set(self, value: float) -> None:
        self.value = value

    def inc(self, amount: float = 1) -> None:  # hot
        self.value += amount

    def dec(self, amount: float = 1) -> None:  # hot
        self.value -= amount

    def samples(self) -> Iterator[tuple[str, str, float]]:
        yield "", "", self.value


@final
class Histogram:
    """Counts of observed values by bucket, and their sum."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, amount: float) -> None:  # hot
        self._counts[bisect_left(self._bounds, amount)] += 1
        self._sum += amount

    def samples(self) -> Iterator[tuple[str, str, float]]:
        total = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            total += count
            yield "_bucket", f'le="{_number(bound)}"', total
        yield "_count", "", total
        yield "_sum", "", self._sum


class _Cell(Protocol):
    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Suffix of the name, extra label, value."""
        ...


C = TypeVar("C", bound=_Cell)


@final
class Family(Generic[C]):
    """One metric; each combination of label values is a child of it."""

    __slots__ = ("_children", "_labels", "_make", "_name", "_text", "_type")

    def __init__(self, metric_type: str, name: str, text: str, labels: Sequence[str], make: Callable[[], C]) -> None:
        self._type = metric_type
        self._name = name
        self._text = text
        self._labels = tuple(labels)
        self._make = make
        self._children: dict[tuple[str, ...], C] = {}

    def child(self, *labels: str) -> C:  # hot
        """The child with these label values, in the declared order."""
        found = self._children.get(labels)
        if found is None:
            found = self._children[labels] = self._make()
        return found

    def remove(self, *labels: str) -> None:
        """Remove a child from the output."""
        self._children.pop(labels, None)

    def lines(self) -> Iterator[str]:
        """The family in Prometheus' text format."""
        yield f"# HELP {self._name} {_escape(self._text)}"
        yield f"# TYPE {self._name} {self._type}"
        for values, cell in self._children.items():
            pairs = sorted(f'{label}="{_escape(value)}"' for label, value in zip(self._labels, values, strict=True))
            for suffix, extra, value in cell.samples():
                labels = ",".join([*pairs, extra] if extra else pairs)
                label_text = f"{{{labels}}}" if labels else ""
                yield f"{self._name}{suffix}{label_text} {_number(value)}"


@final
class Metrics:
    """A registry. Declaring a name twice returns the same family."""

    def __init__(self, *, process: bool = False) -> None:
        """`process` adds the process metrics, if prometheus-client is installed."""
        self._wants_process = process
        self._process: Callable[[], bytes] | None = None
        self._families: dict[str, Family[_Cell]] = {}
        self._refreshers: list[Callable[[], None]] = []

    def counter(self, name: str, text: str, *, labels: Sequence[str] = ()) -> Family[Counter]:
        """`name` ends in `_total`."""
        return self._family("counter", name, text, labels, Counter)

    def gauge(self, name: str, text: str, *, labels: Sequence[str] = ()) -> Family[Gauge]:
        return self._family("gauge", name, text, labels, Gauge)

    def histogram(
        self, name: str, text: str, *, labels: Sequence[str] = (), buckets: Sequence[float]
    ) -> Family[Histogram]:
        return self._family("histogram", name, text, labels, lambda: Histogram(buckets))

    def before_exposition(self, refresh: Callable[[], None]) -> None:
        """Call `refresh` before each exposition: for values that are cheaper to look up than to track."""
        self._refreshers.append(refresh)

    def exposition(self) -> bytes:
        """Everything, in Prometheus' text format (`CONTENT_TYPE`)."""
        for refresh in self._refreshers:
            try:
                refresh()
            except Exception as error:
                _log.error("a metric could not be refreshed", error=error)
        text = "".join(f"{line}\n" for family in self._families.values() for line in family.lines()).encode()
        if self._wants_process:  # imported at the first scrape: it takes 10 MB
            self._wants_process, self._process = False, _process_text()
        return text if self._process is None else text + self._process()

    def _family(
        self, metric_type: str, name: str, text: str, labels: Sequence[str], make: Callable[[], C]
    ) -> Family[C]:
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = cast("Family[_Cell]", Family(metric_type, name, text, labels, make))
        return cast("Family[C]", family)


def _process_text() -> Callable[[], bytes] | None:
    try:
        import prometheus_client
    except ModuleNotFoundError:
        return None
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.ProcessCollector(registry=registry)
    prometheus_client.GCCollector(registry=registry)
    return lambda: prometheus_client.generate_latest(registry)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return repr(float(value))
