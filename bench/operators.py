"""A backlog of Widgets and single changes: the same operator in several frameworks, on one real control plane.

For each round and each operator in turn: start it with one Widget (what starting costs), then with N Widgets that
wait for it (CPU, throughput, memory), then change one Widget at a time (latency when idle). Per operator and as
medians:

- `cpu_ms_per_object`, `objects_per_s`: from the start of the process to the last status, start-up included;
- `p50_ms`, `p99_ms`: from the answer to a change until its status is seen;
- `rss_mb`, `peak_rss_mb`: resident memory after the backlog, and its highest in the whole run;
- `writes_per_object`: requests that write, until the operator is idle again; two are needed;
- `start_cpu_ms`, `start_ms`, `empty_rss_mb`: the run with one Widget;
- `cpu_ms_per_object_after_start`, `objects_per_s_after_start`: the first two without that.

Run as `python -m bench.operators`; `bench.__main__` calls `measure`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from statistics import quantiles

from bench.peers.commands import NAMES, TITLES, YARDSTICK, Peer, prepare
from bench.processes import MeasuredProcess
from bench.report import Budget, Figures, Table, medians
from bench.statuses import Statuses
from bench.widget_cluster import WidgetCluster
from bench.widgets import NAMESPACE, SENTINEL, Widget, light_widget, sentinel
from kubewright._base.loop import run
from kubewright.errors import KubewrightError

__all__ = ("TABLE", "measure", "say")

TABLE = Table(
    title="The same operator in several frameworks",
    intro="For each of 2 000 waiting Widgets: server-side apply one owned ConfigMap, write the status; then single "
    "changes, one after the other. CPU and throughput include the start of the process. The yardstick has an "
    "experimental option on without which controller-runtime writes many statuses twice; the row below is without.",
    yardstick=YARDSTICK,
    variants=TITLES,
    columns={
        "cpu_ms_per_object": "CPU per object, ms",
        "cpu_ms_per_object_after_start": "the same after start",
        "objects_per_s": "objects per s",
        "p50_ms": "p50, ms",
        "p99_ms": "p99, ms",
        "rss_mb": "RSS, MB",
        "writes_per_object": "writes per object",
    },
    budgets=(
        *(
            budget
            for go in ("go", "go-default")
            for budget in (
                Budget("cpu_ms_per_object", go, most=0.75),
                Budget("objects_per_s", go, least=1.3),
                Budget("rss_mb", go, most=1.0),
                Budget("p50_ms", go, most=1.0),
                Budget("p99_ms", go, most=1.2),
            )
        ),
        Budget("cpu_ms_per_object", "kopf", most=0.25),
        Budget("objects_per_s", "kopf", least=1.5),
        Budget("rss_mb", "kopf", most=0.35),
    ),
)

_START_TIMEOUT = 60.0
_CHANGE_TIMEOUT = 30.0


def measure(
    operators: Sequence[str] = NAMES, *, objects: int = 2_000, rounds: int = 3, changes: int = 100
) -> dict[str, dict[str, float]]:
    """The figures of each operator; one that cannot be had here is left out."""
    return run(_measure(prepare(operators, say=say), objects, rounds, changes))


async def _measure(peers: Sequence[Peer], objects: int, rounds: int, changes: int) -> dict[str, dict[str, float]]:
    if not peers:
        return {}
    gathered: dict[str, list[Figures]] = {peer.name: [] for peer in peers}
    async with WidgetCluster.started() as cluster:
        for number in range(rounds):
            # Each round starts with another one: whatever the first of a round pays is paid by all in turn.
            for peer in (*peers[number % len(peers) :], *peers[: number % len(peers)]):
                started = time.perf_counter()
                start = await _start_alone(cluster, peer)
                figures = await _backlog_and_changes(cluster, peer, start, objects, changes)
                gathered[peer.name].append(figures)
                say(f"round {number + 1}, {peer.name}: {time.perf_counter() - started:.1f} s")
    return {name: medians(figures) for name, figures in gathered.items()}


async def _start_alone(cluster: WidgetCluster, peer: Peer) -> Figures:
    """What it costs to start, with one Widget to tell when that is done."""
    await cluster.fill([sentinel()])
    async with cluster.operated(peer) as (process, statuses):
        ready = await statuses.written({SENTINEL: 1}, by=process, timeout=_START_TIMEOUT)
        cpu = await process.settled()
        figures = {
            "start_cpu_ms": cpu * 1e3,
            "start_ms": (ready - process.started) * 1e3,
            "empty_rss_mb": process.memory_mb()[0],
        }
    await cluster.clear()
    return figures


async def _backlog_and_changes(
    cluster: WidgetCluster, peer: Peer, start: Figures, objects: int, changes: int
) -> Figures:
    widgets = await cluster.fill(light_widget(number) for number in range(objects))
    writes = -await cluster.writes()
    async with cluster.operated(peer) as (process, statuses):
        generations = {widget.metadata.name: 1 for widget in widgets}
        last = await statuses.written(generations, by=process, timeout=_START_TIMEOUT + objects / 20)
        cpu, seconds = await process.settled(), last - process.started
        resident, _ = process.memory_mb()
        writes += await cluster.writes()
        latencies = await _change_one_by_one(cluster, process, statuses, widgets, changes)
        _, peak = process.memory_mb()
    await cluster.check_children()
    await cluster.clear()
    after_start = seconds - start["start_ms"] / 1e3
    return {
        "cpu_ms_per_object": cpu / objects * 1e3,
        "objects_per_s": objects / seconds,
        "p50_ms": _percentile(latencies, 50),
        "p99_ms": _percentile(latencies, 99),
        "rss_mb": resident,
        "peak_rss_mb": peak,
        "writes_per_object": writes / objects,
        "cpu_ms_per_object_after_start": (cpu - start["start_cpu_ms"] / 1e3) / objects * 1e3,
        "objects_per_s_after_start": objects / max(after_start, 0.001),
        **start,
    }


async def _change_one_by_one(
    cluster: WidgetCluster, process: MeasuredProcess, statuses: Statuses, widgets: Sequence[Widget], changes: int
) -> list[float]:
    """Milliseconds from the answer to each change until its status was seen."""
    latencies = []
    for number in range(changes):
        widget = widgets[number * 7 % len(widgets)]
        # Read first: an operator may have written since, and the patch is what differs from what was read.
        widget = await cluster.client.get(Widget, widget.metadata.name, namespace=NAMESPACE)
        widget.spec.size += 1
        changed = await cluster.client.patch(widget)
        answered = time.perf_counter()
        generation = {changed.metadata.name: changed.metadata.generation}
        # Seen before the answer was read: as fast as can be told.
        seen = await statuses.written(generation, by=process, timeout=_CHANGE_TIMEOUT)
        latencies.append(max(0.0, seen - answered) * 1e3)
    return latencies


def _percentile(values: Sequence[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else sum(values)


def say(text: str) -> None:
    """A line of progress."""
    print(text, flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare operators on a backlog of objects and on single changes.")
    parser.add_argument("--operators", default=",".join(NAMES), help=f"comma-separated, of {', '.join(NAMES)}")
    parser.add_argument("--objects", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--changes", type=int, default=100)
    asked = parser.parse_args()
    try:
        results = measure(asked.operators.split(","), objects=asked.objects, rounds=asked.rounds, changes=asked.changes)
    except KubewrightError as error:
        sys.exit(str(error))
    say(f"\n{asked.objects} objects, median of {asked.rounds}; in parentheses the ratio to {YARDSTICK}")
    say(TABLE.text(results))


if __name__ == "__main__":
    main()
