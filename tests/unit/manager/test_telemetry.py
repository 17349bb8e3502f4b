"""The metrics: names and labels that dashboards for controller-runtime know."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubewright._base.loop_monitor import Block
from kubewright._base.metrics import Metrics
from kubewright.api.names import ObjectKey
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.errors import ConfigError, TransportError
from kubewright.k8s.core.v1 import Pod
from kubewright.manager.cache_protocols import Problem
from kubewright.manager.telemetry import Telemetry
from kubewright.testing.clock import VirtualClock
from kubewright.workqueue.queue import WorkQueue


def telemetry(clock: VirtualClock | None = None) -> Telemetry:
    return Telemetry(Metrics(), clock=clock or VirtualClock())


def samples(shown: Telemetry) -> dict[str, float]:
    lines = shown.metrics.exposition().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def test_a_number_that_could_not_be_taken_is_not_shown() -> None:
    shown = telemetry()
    observer = shown.controller("web", gauges=("web_size",))
    observer.on_gauges(ObjectKey("shop", "a"), {"web_size": 3.0})
    before = samples(shown)

    observer.on_gauges(ObjectKey("shop", "a"), {"web_size": None})

    assert before['web_size{name="a",namespace="shop"}'] == 3
    assert not [name for name in samples(shown) if name.startswith("web_size")]


def test_a_gauge_with_the_name_of_another_metric_is_refused_at_the_start() -> None:
    shown = telemetry()
    shown.controller("web")

    with pytest.raises(ConfigError, match="controller_runtime_reconcile_total is a counter"):
        shown.controller("other", gauges=("controller_runtime_reconcile_total",))


def test_every_result_is_there_before_the_first_run() -> None:
    shown = telemetry()

    shown.controller("web", concurrency=4)

    values = samples(shown)
    for result in ("success", "error", "requeue", "requeue_after"):
        assert values[f'controller_runtime_reconcile_total{{controller="web",result="{result}"}}'] == 0
    assert values['controller_runtime_max_concurrent_reconciles{controller="web"}'] == 4
    assert values['controller_runtime_reconcile_errors_total{controller="web"}'] == 0


def test_runs_are_counted_by_result_and_timed() -> None:
    shown = telemetry()
    web = shown.controller("web")
    for result in ("success", "requeue_after", "error", "terminal"):
        web.on_start()
        web.on_end(result, 0.3)
    web.on_start()
    web.on_timeout()
    web.on_panic()
    web.on_write_loop()

    values = samples(shown)
    label = 'controller="web"'
    assert values[f'controller_runtime_reconcile_total{{{label},result="success"}}'] == 1
    assert values[f'controller_runtime_reconcile_total{{{label},result="error"}}'] == 2
    assert values[f"controller_runtime_reconcile_errors_total{{{label}}}"] == 2
    assert values[f"controller_runtime_terminal_reconcile_errors_total{{{label}}}"] == 1
    assert values[f"controller_runtime_reconcile_timeouts_total{{{label}}}"] == 1
    assert values[f"controller_runtime_reconcile_panics_total{{{label}}}"] == 1
    assert values[f"kubewright_write_loops_total{{{label}}}"] == 1
    assert values[f"controller_runtime_active_workers{{{label}}}"] == 1
    assert values[f"controller_runtime_reconcile_time_seconds_count{{{label}}}"] == 4
    assert values[f'controller_runtime_reconcile_time_seconds_bucket{{{label},le="0.3"}}'] == 4


async def test_a_queue_is_followed() -> None:
    clock = VirtualClock()
    shown = telemetry(clock)
    observer = shown.queue("web")
    queue: WorkQueue[str] = WorkQueue(clock=clock, observer=observer)
    observer.follow(queue)
    queue.add("a", priority=5)
    queue.add("b")
    await clock.advance(2)
    assert (await queue.get()) is not None
    await clock.advance(3)
    queue.add_rate_limited("b")

    values = samples(shown)
    label = 'controller="web",name="web"'
    assert values[f"workqueue_adds_total{{{label}}}"] == 2
    assert values[f"workqueue_retries_total{{{label}}}"] == 1
    assert values[f'workqueue_depth{{{label},priority="0"}}'] == 1
    assert values[f"workqueue_unfinished_work_seconds{{{label}}}"] == 3
    assert values[f"workqueue_longest_running_processor_seconds{{{label}}}"] == 3
    assert values[f"workqueue_queue_duration_seconds_sum{{{label}}}"] == 2

    queue.done("a")
    assert samples(shown)[f"workqueue_work_duration_seconds_sum{{{label}}}"] == 3
    queue.shut_down()


async def test_one_controller_on_two_clusters_is_added_up() -> None:
    shown = telemetry()
    for count in (1, 2):
        shown.controller("web", concurrency=2)
        observer = shown.queue("web")
        queue: WorkQueue[str] = WorkQueue(clock=VirtualClock(), observer=observer)
        observer.follow(queue)
        for number in range(count):
            queue.add(f"key-{number}")

    values = samples(shown)

    label = 'controller="web",name="web"'
    assert values[f'workqueue_depth{{{label},priority="0"}}'] == 3
    assert values[f"workqueue_adds_total{{{label}}}"] == 3
    assert values['controller_runtime_max_concurrent_reconciles{controller="web"}'] == 4


async def test_priorities_without_number_share_a_row() -> None:
    shown = telemetry()
    observer = shown.queue("web")
    queue: WorkQueue[str] = WorkQueue(clock=VirtualClock(), observer=observer)
    observer.follow(queue)
    for number in range(40):
        queue.add(f"key-{number}", priority=number)

    rows = {name: value for name, value in samples(shown).items() if name.startswith("workqueue_depth")}

    assert len(rows) == 26
    assert rows['workqueue_depth{controller="web",name="web",priority="exceeded_cardinality_limit"}'] == 15
    assert sum(rows.values()) == 40
    queue.shut_down()


def test_a_cache_is_counted_by_kind() -> None:
    shown = telemetry()
    cache = shown.cache()
    cache.on_events(Pod, 7)
    cache.on_list(Pod, "expired")
    cache.on_watch_end(Pod, "closed")
    cache.on_malformed(Pod)
    cache.on_handler_error(Pod, "enqueue")

    values = samples(shown)
    assert values['kubewright_watch_events_total{kind="Pod"}'] == 7
    assert values['kubewright_lists_total{kind="Pod",reason="expired"}'] == 1
    assert values['kubewright_watch_ends_total{kind="Pod",reason="closed"}'] == 1
    assert values['kubewright_malformed_objects_total{kind="Pod"}'] == 1
    assert values['kubewright_handler_errors_total{handler="enqueue",kind="Pod"}'] == 1


class Kept:
    def __init__(self, count: int, size: int) -> None:
        self.count, self.size = count, size

    def __len__(self) -> int:
        return self.count


class StubInformer:
    kind = Pod
    synced = True
    problem = None

    def __init__(self, age: float, store: Kept | None = None) -> None:
        self.age = age
        if store is not None:
            self.store = store

    def watch_age(self) -> float:
        return self.age

    def past_deadline(self) -> bool:
        return False


class Watches:
    def __init__(self, *watching: StubInformer) -> None:
        self.watching = watching

    async def run(self) -> None: ...

    async def wait_for_sync(self) -> None: ...

    def problems(self) -> list[Problem]:
        return []

    def informers(self) -> tuple[StubInformer, ...]:
        return self.watching

    def informer(self, kind: type[Any]) -> StubInformer:
        return self.watching[0]


def test_a_kind_that_is_watched_in_several_scopes_and_clusters_is_added_up() -> None:
    shown = telemetry()
    home, away = (
        Watches(StubInformer(2.0, Kept(3, 4500)), StubInformer(7.0, Kept(1, 500))),
        Watches(StubInformer(1.0, Kept(2, 10))),
    )
    shown.watch_cache(home)
    shown.watch_cache(away)

    values = samples(shown)
    assert values['kubewright_cache_objects{kind="Pod"}'] == 6
    assert values['kubewright_cache_bytes{kind="Pod"}'] == 5010
    assert values['kubewright_watch_age_seconds{kind="Pod"}'] == 7

    home.watching = ()
    assert samples(shown)['kubewright_cache_objects{kind="Pod"}'] == 2


def test_a_kind_that_is_no_longer_watched_is_not_shown() -> None:
    shown = telemetry()
    cache = Watches(StubInformer(2.0, Kept(3, 4500)))
    shown.watch_cache(cache)
    assert 'kubewright_watch_age_seconds{kind="Pod"}' in samples(shown)

    cache.watching = ()

    assert not [name for name in samples(shown) if 'kind="Pod"' in name]


def test_another_cache_need_not_tell_what_it_keeps() -> None:
    shown = telemetry()
    shown.watch_cache(Watches(StubInformer(2.0)))

    values = samples(shown)
    assert values['kubewright_watch_age_seconds{kind="Pod"}'] == 2
    assert 'kubewright_cache_objects{kind="Pod"}' not in values


class Stream:
    status = 200
    headers: Mapping[str, str] = {}

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b""

    async def read(self) -> bytes:
        return b""


class Wire:
    def __init__(self) -> None:
        self.closed = False

    async def send(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/broken":
            raise TransportError("gone")
        return HttpResponse(status=201, headers={}, body=b"")

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[HttpStream]:
        if request.path == "/broken":
            raise TransportError("gone")
        yield Stream()

    async def close(self) -> None:
        self.closed = True


async def test_requests_are_counted_by_code_method_and_host() -> None:
    shown, wire = telemetry(), Wire()
    transport = shown.transport(wire, host="api:6443")

    await transport.send(HttpRequest(method="POST", path="/x"))
    with pytest.raises(TransportError):
        await transport.send(HttpRequest(method="GET", path="/broken"))
    async with transport.stream(HttpRequest(method="GET", path="/watch")):
        pass
    with pytest.raises(TransportError):
        async with transport.stream(HttpRequest(method="GET", path="/broken")):
            pass
    await transport.close()

    values = samples(shown)
    assert values['rest_client_requests_total{code="201",host="api:6443",method="POST"}'] == 1
    assert values['rest_client_requests_total{code="<error>",host="api:6443",method="GET"}'] == 2
    assert values['rest_client_requests_total{code="200",host="api:6443",method="GET"}'] == 1
    assert values['rest_client_request_duration_seconds_count{host="api:6443",verb="POST"}'] == 1
    assert wire.closed


def test_leadership_lag_and_blocks_are_shown() -> None:
    shown = telemetry()
    told = shown.on_leading("boss")
    assert samples(shown)['leader_election_master_status{name="boss"}'] == 0

    told(True)
    shown.on_lag(0.25)
    shown.on_block(Block(seconds=2.0, place="x.py:1 in f", stack=""))

    values = samples(shown)
    assert values['leader_election_master_status{name="boss"}'] == 1
    assert values["kubewright_event_loop_lag_seconds"] == 0.25
    assert values["kubewright_event_loop_blocks_total"] == 1


def test_certificates_are_counted_from_nothing_on() -> None:
    shown = telemetry()
    total, errors = "certwatcher_read_certificate_total", "certwatcher_read_certificate_errors_total"
    before = samples(shown)
    assert (before[total], before[errors]) == (0, 0)

    shown.on_certificate(True)
    shown.on_certificate(False)

    after = samples(shown)
    assert (after[total], after[errors]) == (2, 1)
