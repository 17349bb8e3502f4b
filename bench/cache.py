"""What a cache of many objects costs: operators started with 20 000 custom resources of 2.5 KB that need no work.

The Widgets are paused, so operators hold them and write nothing; kopf does not even hold them (see its operator).
For each operator, started with one Widget and then with all, as medians:

- `rss_mb`: growth of resident memory, once the operator has read everything and is idle;
- `cpu_ms_per_object`: growth of CPU time until then, per object;
- `objects_per_s`: how fast the list was read, start-up left out;
- `empty_rss_mb`, `peak_rss_mb`: memory without the objects, and the highest with them.

Run as `python -m bench.cache`; `bench.__main__` calls `measure`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from bench.operators import say
from bench.peers.commands import NAMES, TITLES, YARDSTICK, Peer, prepare
from bench.report import Budget, Figures, Table, medians
from bench.widget_cluster import WidgetCluster
from bench.widgets import SENTINEL, Widget, heavy_widget, sentinel
from kubewright._base.loop import run
from kubewright.errors import KubewrightError
from kubewright.k8s.core.v1 import ConfigMap

__all__ = ("TABLE", "measure")

TABLE = Table(
    title="A cache of 20 000 custom resources of 2.5 KB",
    intro="What starting with them costs over starting with one. (kopf keeps no objects.)",
    budgets=(Budget("rss_mb", YARDSTICK, most=0.5), Budget("cpu_ms_per_object", YARDSTICK, most=0.7)),
    yardstick=YARDSTICK,
    variants=TITLES,
    columns={
        "rss_mb": "growth of RSS, MB",
        "cpu_ms_per_object": "CPU per object, ms",
        "empty_rss_mb": "RSS when empty, MB",
    },
)

_TIMEOUT = 180.0


def measure(operators: Sequence[str] = NAMES, *, objects: int = 20_000, rounds: int = 3) -> dict[str, dict[str, float]]:
    """The figures of each operator; one that cannot be had here is left out."""
    return run(_measure(prepare(operators, say=say), objects, rounds))


async def _measure(peers: Sequence[Peer], objects: int, rounds: int) -> dict[str, dict[str, float]]:
    if not peers:
        return {}
    async with WidgetCluster.started() as cluster:
        empty = [await _start_each(cluster, peers) for _ in range(rounds)]
        started = time.perf_counter()
        await cluster.fill(heavy_widget(number) for number in range(objects))
        say(f"{objects} objects created in {time.perf_counter() - started:.1f} s")
        full = [await _start_each(cluster, peers) for _ in range(rounds)]
    return {
        peer.name: medians(
            _growth(before[peer.name], after[peer.name], objects) for before, after in zip(empty, full, strict=True)
        )
        for peer in peers
    }


async def _start_each(cluster: WidgetCluster, peers: Sequence[Peer]) -> dict[str, Figures]:
    """Start the operators one after the other; each is done when it has written the status of the last Widget."""
    gathered: dict[str, Figures] = {}
    for peer in peers:
        (last,) = await cluster.fill([sentinel()])
        async with cluster.operated(peer) as (process, statuses):
            ready = await statuses.written({SENTINEL: 1}, by=process, timeout=_TIMEOUT)
            cpu = await process.settled(timeout=_TIMEOUT)
            resident, peak = process.memory_mb()
            gathered[peer.name] = {"seconds": ready - process.started, "cpu": cpu, "resident": resident, "peak": peak}
        # The child goes by our hand: the next operator would have to wait for the garbage collector, which looks for
        # kinds that are new to it only every half minute.
        await cluster.client.delete(ConfigMap, last.key)
        await cluster.client.delete(Widget, last.key)
        say(f"{peer.name}: synced in {ready - process.started:.2f} s, {cpu:.2f} s CPU, {resident:.0f} MB")
    return gathered


def _growth(empty: Figures, full: Figures, objects: int) -> Figures:
    return {
        "rss_mb": full["resident"] - empty["resident"],
        "cpu_ms_per_object": (full["cpu"] - empty["cpu"]) / objects * 1e3,
        "objects_per_s": objects / max(full["seconds"] - empty["seconds"], 0.001),
        "empty_rss_mb": empty["resident"],
        "peak_rss_mb": full["peak"],
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare what operators pay for a cache of many objects.")
    parser.add_argument("--operators", default=",".join(NAMES), help=f"comma-separated, of {', '.join(NAMES)}")
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    try:
        results = measure(asked.operators.split(","), objects=asked.objects, rounds=asked.rounds)
    except KubewrightError as error:
        sys.exit(str(error))
    say(f"\n{asked.objects} objects, median of {asked.rounds}; in parentheses the ratio to {YARDSTICK}")
    say(TABLE.text(results))


if __name__ == "__main__":
    main()
