"""Counters, gauges and histograms, and their text for Prometheus.

    metrics = Metrics()
    adds = metrics.counter("workqueue_adds_total", "Keys added.", labels=("name",)).child("web")
    adds.inc()                                # bound once; then a call is one addition

A name, a label or a value that Prometheus could not read is refused where it is given: it reads all of `/metrics` or
nothing. Plain numbers without locks: only the event loop changes them, and an operator changes a dozen for every
object. Each `Metrics` is a registry of its own, so that two managers in one process do not clash. Process metrics (CPU,
memory, open files) come from prometheus-client if it is installed; no other module imports it.
`kubewright.manager.telemetry` declares the metrics.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, Protocol, TypeVar, cast, final

from kubewright._base.logs import Logger
from kubewright.errors import ConfigError

__all__ = ("CONTENT_TYPE", "Counter", "Family", "Gauge", "Histogram", "Metrics")

_log = Logger("kubewright.metrics")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# https://prometheus.io/docs/concepts/data_model: older servers than 3 take no others.
_METRIC: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL: Final = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


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
        self.value = float(value)  # what is no number is refused here, and not when it is shown

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
            self._check(labels)
            found = self._children[labels] = self._make()
        return found

    def declared_as(self, metric_type: str, labels: Sequence[str]) -> bool:
        """Whether it is of this type and has these labels."""
        return self._type == metric_type and self._labels == tuple(labels)

    def __str__(self) -> str:
        return f"a {self._type} with {_listed(self._labels)}"

    def _check(self, values: tuple[object, ...]) -> None:
        if len(values) != len(self._labels):
            raise ConfigError(
                f"the metric {self._name} has {_listed(self._labels)}; give child() a value for each, not {values!r}"
            )
        for label, value in zip(self._labels, values, strict=True):
            if not isinstance(value, str):
                raise ConfigError(f"the label {label} of the metric {self._name} is {value!r}; give text, as in str()")

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
        # A label may come from anywhere, and half a character of UTF-16 must not hide all other metrics.
        text = "".join(f"{line}\n" for family in self._families.values() for line in family.lines()).encode(
            errors="replace"
        )
        if self._wants_process:  # imported at the first scrape: it takes 10 MB
            self._wants_process, self._process = False, _process_text()
        return text if self._process is None else text + self._process()

    def _family(
        self, metric_type: str, name: str, text: str, labels: Sequence[str], make: Callable[[], C]
    ) -> Family[C]:
        family = self._families.get(name)
        if family is not None and not family.declared_as(metric_type, labels):
            raise ConfigError(
                f"the metric {name} is {family} already, and not a {metric_type} with {_listed(labels)}; give this one "
                "another name"
            )
        if family is None:
            _check_names(metric_type, name, labels)
            family = self._families[name] = cast("Family[_Cell]", Family(metric_type, name, text, labels, make))
        return cast("Family[C]", family)


def _check_names(metric_type: str, name: str, labels: Sequence[str]) -> None:
    if isinstance(labels, str):
        raise ConfigError(f"the labels of the metric {name} are {labels!r}; give a tuple, as in labels=({labels!r},)")
    if not _METRIC.fullmatch(name):
        raise ConfigError(f"{name!r} is no name for a metric; write it like shop_orders_total")
    for label in labels:
        if not _LABEL.fullmatch(label) or (label == "le" and metric_type == "histogram"):
            raise ConfigError(f"{label!r} is no name for a label of the metric {name}; write it like region")
    if len(set(labels)) < len(labels):
        raise ConfigError(f"the metric {name} has a label twice: {', '.join(labels)}")


def _listed(labels: Sequence[str]) -> str:
    return f"the labels {', '.join(labels)}" if labels else "no labels"


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
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    if value != value:
        return "NaN"
    return repr(float(value))
