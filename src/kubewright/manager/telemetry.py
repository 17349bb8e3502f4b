"""The metrics of a manager, under the names and labels that dashboards for controller-runtime know.

One `Telemetry` per manager, on a registry of its own. It hands out observers, small objects bound to their labels once:
for a queue, for a controller, for a cache, for a transport. They implement the protocols of those layers, which know
nothing of metrics. What controller-runtime has no metric for begins with `kubewright_`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import chain
from typing import Any, Final, Protocol, final

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.loop_monitor import Block, report
from kubewright._base.metrics import Metrics
from kubewright._base.tracing import span
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.cache.observer import CacheObserver
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream, Transport
from kubewright.manager.cache_protocols import CacheLike, WatchHealth

__all__ = (
    "CacheMetrics",
    "ControllerMetrics",
    "MeasuredTransport",
    "QueueLike",
    "QueueMetrics",
    "Telemetry",
    "WatchMetrics",
    "WebhookMetrics",
)

_RECONCILE_BUCKETS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(
        1.25,
        1.5,
        1.75,
        2.0,
        2.5,
        3.0,
        3.5,
        4.0,
        4.5,
        5.0,
        6.0,
        7.0,
        8.0,
        9.0,
        10.0,
        15.0,
        20.0,
        25.0,
        30.0,
        40.0,
        50.0,
        60.0,
    ),
)
_QUEUE_BUCKETS: Final = tuple(10.0**exponent for exponent in range(-8, 4))
_REQUEST_BUCKETS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_WEBHOOK_BUCKETS: Final = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_CONVERSION: Final = "/convert"
_MOST_PRIORITIES: Final = 25
_TOO_MANY: Final = "exceeded_cardinality_limit"
_RESULTS: Final = ("success", "error", "requeue", "requeue_after")


class QueueLike(Protocol):
    """What the metrics ask of a queue when they are shown."""

    def depths(self) -> Mapping[int, int]: ...

    def processing(self) -> Mapping[Any, float]: ...


@final
class Telemetry:
    """Every metric of one manager."""

    def __init__(self, metrics: Metrics | None = None, *, clock: Clock | None = None) -> None:
        self.metrics = metrics or Metrics(process=True)
        self._clock = clock or SystemClock()
        gauge, counter = self.metrics.gauge, self.metrics.counter
        self._leading = gauge("leader_election_master_status", "1 where this process leads.", labels=("name",))
        self._lag = gauge("kubewright_event_loop_lag_seconds", "How late the event loop was when last measured.")
        self._blocks = counter("kubewright_event_loop_blocks_total", "How often the event loop stood still.")
        self._certificates = counter("certwatcher_read_certificate_total", "Serving certificates that came.").child()
        text = "Those that could not be used."
        self._unfit_certificates = counter("certwatcher_read_certificate_errors_total", text).child()
        self._watches = WatchMetrics(self.metrics)
        self._queues: dict[str, QueueMetrics] = {}

    def controller(self, name: str, *, concurrency: int = 1, gauges: Iterable[str] = ()) -> ControllerMetrics:
        """For the reconciles of a controller, and the gauges of its objects."""
        return ControllerMetrics(self.metrics, name, concurrency, gauges)

    def queue(self, name: str) -> QueueMetrics:
        """For the queue of the controller of that name."""
        if name not in self._queues:
            self._queues[name] = QueueMetrics(self.metrics, name)
        return self._queues[name]

    def cache(self) -> CacheMetrics:
        """For a cache."""
        return CacheMetrics(self.metrics)

    def webhooks(self) -> WebhookMetrics:
        """For the webhook server."""
        return WebhookMetrics(self.metrics)

    def watch_cache(self, cache: CacheLike) -> None:
        """Show the age of each watch, and how much is kept of each kind."""
        self._watches.follow(cache)

    def transport(self, transport: Transport, *, host: str) -> MeasuredTransport:
        """Count and trace what goes through a transport."""
        return MeasuredTransport(transport, self.metrics, host=host, clock=self._clock)

    def on_leading(self, name: str) -> Callable[[bool], None]:
        """For leader election; 0 until it is won."""
        gauge = self._leading.child(name)
        gauge.set(0)
        return lambda leading: gauge.set(int(leading))

    def on_lag(self, seconds: float) -> None:
        self._lag.child().set(seconds)

    def on_certificate(self, fits: bool) -> None:
        """For servers with TLS: a certificate came, and it can be used or cannot."""
        self._certificates.inc()
        if not fits:
            self._unfit_certificates.inc()

    def on_block(self, block: Block) -> None:
        """For the loop monitor, on its thread: counters may be used from any."""
        self._blocks.child().inc()
        report(block)


@final
class ControllerMetrics:
    """An observer of the reconciles of a controller."""

    def __init__(self, metrics: Metrics, controller: str, concurrency: int, gauges: Iterable[str] = ()) -> None:
        """A gauge whose name another metric has is a ConfigError."""

        def total(name: str, text: str) -> Callable[[], None]:
            return metrics.counter(name, text, labels=("controller",)).child(controller).inc

        self._gauges = {
            name: metrics.gauge(name, "A number of each object.", labels=("namespace", "name")) for name in gauges
        }
        reconciles = metrics.counter(
            "controller_runtime_reconcile_total", "Reconciles.", labels=("controller", "result")
        )
        # Made now, so that a rate over them is right from the first reconcile on.
        self._reconciles = {result: reconciles.child(controller, result) for result in _RESULTS}
        self._error = total("controller_runtime_reconcile_errors_total", "Reconciles that failed.")
        self._terminal = total(
            "controller_runtime_terminal_reconcile_errors_total", "Reconciles that failed with a terminal error."
        )
        self._timeout = total("controller_runtime_reconcile_timeouts_total", "Reconciles that took too long.")
        self._panic = total("controller_runtime_reconcile_panics_total", "Reconciles that failed unexpectedly.")
        self._loop = total("kubewright_write_loops_total", "Write loops that were detected and slowed down.")
        self._seconds = metrics.histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciles take.",
            labels=("controller",),
            buckets=_RECONCILE_BUCKETS,
        ).child(controller)
        self._active = metrics.gauge(
            "controller_runtime_active_workers", "Workers at work.", labels=("controller",)
        ).child(controller)
        metrics.gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers there are.", labels=("controller",)
        ).child(controller).inc(concurrency)  # one controller on two clusters is two of them

    def on_start(self) -> None:
        """A reconcile begins."""
        self._active.inc()

    def on_end(self, result: str, seconds: float) -> None:
        """A reconcile has ended: success, requeue, requeue_after, error, or terminal, which is an error too."""
        self._active.dec()
        self._seconds.observe(seconds)
        if result == "terminal":
            self._terminal()
            result = "error"
        if result == "error":
            self._error()
        (self._reconciles.get(result) or self._reconciles["error"]).inc()

    def on_timeout(self) -> None:
        """A reconcile was cancelled because it took too long."""
        self._timeout()

    def on_panic(self) -> None:
        """A reconcile failed with an error that is no KubewrightError."""
        self._panic()

    def on_write_loop(self) -> None:
        """A controller writes an object over and over."""
        self._loop()

    def on_gauges(self, key: ObjectKey, values: Mapping[str, float | None]) -> None:
        """Set the gauges of an object, under the names its operator chose; None removes one."""
        for name, value in values.items():
            if value is None:
                self._gauges[name].remove(key.namespace, key.name)
            else:
                self._gauges[name].child(key.namespace, key.name).set(value)

    def on_deleted(self, key: ObjectKey) -> None:
        """Remove the gauges of an object that is gone."""
        for family in self._gauges.values():
            family.remove(key.namespace, key.name)


@final
class QueueMetrics:
    """An observer of a work queue; `follow` adds what is looked up when the metrics are shown."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        labels = ("name", "controller")
        self._metrics = metrics
        self._name = name
        self._followed: list[QueueLike] = []
        self._add = metrics.counter("workqueue_adds_total", "Keys added.", labels=labels).child(name, name).inc
        self._retry = metrics.counter("workqueue_retries_total", "Keys retried.", labels=labels).child(name, name).inc
        self._waited = metrics.histogram(
            "workqueue_queue_duration_seconds", "How long keys wait.", labels=labels, buckets=_QUEUE_BUCKETS
        ).child(name, name)
        self._worked = metrics.histogram(
            "workqueue_work_duration_seconds", "How long keys are processed.", labels=labels, buckets=_QUEUE_BUCKETS
        ).child(name, name)

    def on_add(self) -> None:
        self._add()

    def on_get(self, wait_seconds: float) -> None:
        self._waited.observe(wait_seconds)

    def on_done(self, work_seconds: float) -> None:
        self._worked.observe(work_seconds)

    def on_retry(self) -> None:
        self._retry()

    def follow(self, queue: QueueLike) -> None:
        """Show the depth of the queue, and how long its workers have been busy; of several queues, the sum."""
        self._followed.append(queue)
        if len(self._followed) == 1:
            self._show()

    def _show(self) -> None:
        name, gauge = self._name, self._metrics.gauge
        depth = gauge("workqueue_depth", "Keys that wait.", labels=("name", "controller", "priority"))
        unfinished = gauge(
            "workqueue_unfinished_work_seconds", "Seconds of work under way.", labels=("name", "controller")
        ).child(name, name)
        longest = gauge(
            "workqueue_longest_running_processor_seconds", "The longest work under way.", labels=("name", "controller")
        ).child(name, name)
        shown = {"0"}

        def refresh() -> None:
            depths: dict[str, int] = {}
            for priority, count in chain.from_iterable(queue.depths().items() for queue in self._followed):
                label = str(priority)
                if label not in shown and len(shown) >= _MOST_PRIORITIES:
                    label = _TOO_MANY
                shown.add(label)
                depths[label] = depths.get(label, 0) + count
            for label in shown:
                depth.child(name, name, label).set(depths.get(label, 0))
            processing = [seconds for queue in self._followed for seconds in queue.processing().values()]
            unfinished.set(sum(processing))
            longest.set(max(processing, default=0.0))

        self._metrics.before_exposition(refresh)


@final
class WatchMetrics:
    """What is looked up of caches when the metrics are shown: one row for each kind, however many watches it has.

    A kind is watched several times in different scopes and clusters: its objects are added up, and its age is that of
    the watch that has been silent longest. A kind that nobody watches any more is not shown.
    """

    def __init__(self, metrics: Metrics) -> None:
        kind = ("kind",)
        self._caches: list[CacheLike] = []
        self._shown: set[str] = set()
        self._objects = metrics.gauge("kubewright_cache_objects", "Objects in the cache.", labels=kind)
        self._bytes = metrics.gauge("kubewright_cache_bytes", "Bytes of objects in the cache.", labels=kind)
        self._age = metrics.gauge(
            "kubewright_watch_age_seconds", "Seconds since the server was last heard on a watch.", labels=kind
        )
        metrics.before_exposition(self._refresh)

    def follow(self, cache: CacheLike) -> None:
        """Show this one, too."""
        self._caches.append(cache)

    def _refresh(self) -> None:
        found: dict[str, list[WatchHealth]] = {}
        for cache in self._caches:
            for watched in cache.informers():
                found.setdefault(watched.kind.__name__, []).append(watched)
        for kind, watches in found.items():
            self._age.child(kind).set(max(watched.watch_age() for watched in watches))
            stores = [store for watched in watches if (store := getattr(watched, "store", None)) is not None]
            if stores:  # another cache than our own need not tell
                self._objects.child(kind).set(sum(len(store) for store in stores))
                self._bytes.child(kind).set(sum(store.size for store in stores))
        for kind in self._shown - found.keys():
            for family in (self._age, self._objects, self._bytes):
                family.remove(kind)
        self._shown = {*found}


@final
class CacheMetrics(CacheObserver):
    """An observer of a cache. It looks children up by kind each time: it observes batches, not single objects."""

    def __init__(self, metrics: Metrics) -> None:
        counter = metrics.counter
        kind = ("kind",)
        self._events = counter("kubewright_watch_events_total", "Events received.", labels=kind)
        self._lists = counter(
            "kubewright_lists_total", "Full lists, by what made them needed.", labels=("kind", "reason")
        )
        self._ends = counter("kubewright_watch_ends_total", "Watches that ended.", labels=("kind", "reason"))
        self._malformed = counter("kubewright_malformed_objects_total", "Objects that could not be read.", labels=kind)
        self._handler = counter("kubewright_handler_errors_total", "Handlers that raised.", labels=("kind", "handler"))

    def on_events(self, kind: type[KubeObject], count: int) -> None:
        self._events.child(kind.__name__).inc(count)

    def on_list(self, kind: type[KubeObject], reason: str) -> None:
        self._lists.child(kind.__name__, reason).inc()

    def on_watch_end(self, kind: type[KubeObject], reason: str) -> None:
        self._ends.child(kind.__name__, reason).inc()

    def on_malformed(self, kind: type[KubeObject]) -> None:
        self._malformed.child(kind.__name__).inc()

    def on_handler_error(self, kind: type[KubeObject], handler: str) -> None:
        self._handler.child(kind.__name__, handler).inc()


@final
class WebhookMetrics:
    """An observer of the requests to webhooks."""

    def __init__(self, metrics: Metrics) -> None:
        name = "controller_runtime_webhook"
        webhook = ("webhook",)
        self._total = metrics.counter(f"{name}_requests_total", "Requests by answer.", labels=("webhook", "code"))
        self._seconds = metrics.histogram(
            f"{name}_latency_seconds", "How long answers take.", labels=webhook, buckets=_WEBHOOK_BUCKETS
        )
        self._active = metrics.gauge(f"{name}_requests_in_flight", "Requests being answered.", labels=webhook)
        text = "Handlers that failed unexpectedly."
        self._panic = metrics.counter(f"{name}_panics_total", text).child().inc
        self._conversion_panic = metrics.counter("controller_runtime_conversion_webhook_panics_total", text).child().inc
        self._known: set[str] = set()

    def on_start(self, path: str) -> None:  # hot
        if path not in self._known:
            # So that a rate over them is right from the first answer on.
            self._known.add(path)
            for code in ("200", "500"):
                self._total.child(path, code)
        self._active.child(path).inc()

    def on_end(self, path: str, code: int, seconds: float) -> None:  # hot
        self._active.child(path).dec()
        self._total.child(path, str(code)).inc()
        self._seconds.child(path).observe(seconds)

    def on_panic(self, path: str) -> None:
        if path == _CONVERSION:
            self._conversion_panic()
        else:
            self._panic()


@final
class MeasuredTransport:
    """A transport whose requests are counted, timed and traced."""

    def __init__(self, transport: Transport, metrics: Metrics, *, host: str, clock: Clock) -> None:
        self._transport = transport
        self._host = host
        self._monotonic = clock.monotonic
        self._total = metrics.counter(
            "rest_client_requests_total", "Requests by answer.", labels=("code", "method", "host")
        )
        self._seconds = metrics.histogram(
            "rest_client_request_duration_seconds",
            "How long answers take.",
            labels=("verb", "host"),
            buckets=_REQUEST_BUCKETS,
        )

    async def send(self, request: HttpRequest) -> HttpResponse:  # hot
        started = self._monotonic()
        code = "<error>"
        with span(request.method, path=request.path) as current:
            try:
                response = await self._transport.send(request)
                code = str(response.status)
                current.set("code", response.status)
                return response
            finally:
                self._total.child(code, request.method, self._host).inc()
                self._seconds.child(request.method, self._host).observe(self._monotonic() - started)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        # No span: a stream is open for minutes. Counted when its headers are there.
        code = "<error>"
        counted = False
        try:
            async with self._transport.stream(request) as stream:
                code, counted = str(stream.status), True
                self._total.child(code, request.method, self._host).inc()
                yield stream
        finally:
            if not counted:
                self._total.child(code, request.method, self._host).inc()

    async def close(self) -> None:
        await self._transport.close()
