"""Counters, gauges and histograms behind three one-line protocols.

    metrics = Metrics()
    adds = metrics.counter("workqueue_adds_total", "Keys added.", labels=("name",)).child("web")
    adds.inc()                                # bound once, then a call costs well under a microsecond

Each `Metrics` is a registry of its own, so that two managers in one process do not clash. Without prometheus-client
everything is accepted and nothing counted. The only module that knows that library. Which metrics there are is decided
in `manager.telemetry`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast, final

from kubewright._base.logs import Logger

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

__all__ = ("Counter", "Family", "Gauge", "Histogram", "Metrics")

_log = Logger("kubewright.metrics")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Counter(Protocol):
    """Only grows."""

    def inc(self, amount: float = 1) -> None: ...


class Gauge(Protocol):
    """Goes up and down."""

    def set(self, value: float) -> None: ...
    def inc(self, amount: float = 1) -> None: ...
    def dec(self, amount: float = 1) -> None: ...


class Histogram(Protocol):
    """How often values of which size were seen."""

    def observe(self, amount: float) -> None: ...


C = TypeVar("C")


@final
class Family(Generic[C]):
    """One metric; each combination of label values is a child of it."""

    __slots__ = ("_children", "_make", "_remove")

    def __init__(self, make: Callable[..., C], remove: Callable[..., None]) -> None:
        self._make = make
        self._remove = remove
        self._children: dict[tuple[str, ...], C] = {}

    def child(self, *labels: str) -> C:
        """The child with these label values, in the order the family was declared with."""
        found = self._children.get(labels)
        if found is None:
            found = self._children[labels] = self._make(*labels)
        return found

    def remove(self, *labels: str) -> None:
        """Forget a child, so that it is not shown any more."""
        if self._children.pop(labels, None) is not None:
            self._remove(*labels)


@final
class _Nothing:
    """Every metric of a program without prometheus-client."""

    __slots__ = ()

    def inc(self, amount: float = 1) -> None:
        return None

    def dec(self, amount: float = 1) -> None:
        return None

    def set(self, value: float) -> None:
        return None

    def observe(self, amount: float) -> None:
        return None


_NOTHING = _Nothing()


@final
class Metrics:
    """A registry. Asking twice for one name gives the same family."""

    def __init__(self, *, process: bool = False) -> None:
        """`process` adds the process' own: CPU time, memory, open files, garbage collections."""
        self._registry = _new_registry(process)
        self._families: dict[str, Family[object]] = {}
        self._refreshers: list[Callable[[], None]] = []

    @property
    def available(self) -> bool:
        """Whether anything is counted."""
        return self._registry is not None

    def counter(self, name: str, text: str, *, labels: Sequence[str] = ()) -> Family[Counter]:
        """`name` ends in `_total`."""
        return cast("Family[Counter]", self._family("Counter", name, text, labels, {}))

    def gauge(self, name: str, text: str, *, labels: Sequence[str] = ()) -> Family[Gauge]:
        return cast("Family[Gauge]", self._family("Gauge", name, text, labels, {}))

    def histogram(
        self, name: str, text: str, *, labels: Sequence[str] = (), buckets: Sequence[float]
    ) -> Family[Histogram]:
        return cast("Family[Histogram]", self._family("Histogram", name, text, labels, {"buckets": tuple(buckets)}))

    def before_exposition(self, refresh: Callable[[], None]) -> None:
        """Call this each time before the metrics are shown: for values that are cheaper to look up than to follow."""
        self._refreshers.append(refresh)

    def exposition(self) -> bytes:
        """Everything, in Prometheus' text format (`CONTENT_TYPE`)."""
        if self._registry is None:
            return b""
        for refresh in self._refreshers:
            try:
                refresh()
            except Exception as error:
                _log.error("a metric could not be brought up to date", error=error)
        from prometheus_client import generate_latest

        return generate_latest(cast("CollectorRegistry", _WithoutCreationTimes(self._registry)))

    def _family(
        self, form: str, name: str, text: str, labels: Sequence[str], options: dict[str, tuple[float, ...]]
    ) -> Family[object]:
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = self._new_family(form, name, text, labels, options)
        return family

    def _new_family(
        self, form: str, name: str, text: str, labels: Sequence[str], options: dict[str, tuple[float, ...]]
    ) -> Family[object]:
        if self._registry is None:
            return Family(lambda *values: _NOTHING, lambda *values: None)
        import prometheus_client

        metric = getattr(prometheus_client, form)(name, text, tuple(labels), registry=self._registry, **options)
        if not labels:
            return Family(lambda: metric, lambda: None)
        return Family(metric.labels, metric.remove)


@final
class _WithoutCreationTimes:
    """The registry as it is shown: the library adds a `_created` series to each counter and histogram, which nobody
    here uses and which would nearly double the text; its own switch for that is for the whole process.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


def _new_registry(process: bool) -> CollectorRegistry | None:
    try:
        import prometheus_client
    except ModuleNotFoundError:
        return None
    registry = prometheus_client.CollectorRegistry()
    if process:
        prometheus_client.ProcessCollector(registry=registry)
        prometheus_client.GCCollector(registry=registry)
    return registry
