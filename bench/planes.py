"""The embedded control plane against the real one: how soon it is ready, how fast it writes, what it takes.

Each plane runs in processes of its own (`kubewright cluster up --detach`), and one client measures both in turn:

- `ready_s`: from asking for the plane in a process that has its modules loaded until it can be used;
- `command_s`: the same from the start of the command, Python and its imports included;
- `creates_per_s`: ConfigMaps created by one client, 16 requests at a time;
- `kb_per_object`: growth of the plane's resident memory over 10 000 ConfigMaps;
- `fan_out_per_s`: events delivered per second when 100 watchers see each create;
- `create_us_small`, `create_us_large`: time of one create, one after the other, with 100 and with 100 000 objects
  there (the large one on the embedded plane alone: the real one takes minutes to fill).

Run as `python -m bench planes`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.children import interleaved, report
from bench.operators import say
from bench.report import Budget, Table, medians
from kubewright import Client, Config, connect
from kubewright._base.loop import run
from kubewright.client.watch import RawEvents
from kubewright.cluster.planes import background, embedded, real
from kubewright.cluster.planes.state import ClusterRecord
from kubewright.k8s.core.v1 import ConfigMap

__all__ = ("TABLE", "measure")

VARIANTS = {"embedded": "embedded control plane", "real": "etcd + kube-apiserver + kube-controller-manager"}
TABLE = Table(
    title="The embedded control plane and the real one",
    intro="The same client, the same requests, over TLS. Creates are small ConfigMaps.",
    subject="embedded",
    yardstick="real",
    budgets=(Budget("ready_s", "real", most=0.1), Budget("creates_per_s", "real", least=2.0)),
    variants=VARIANTS,
    columns={
        "ready_s": "ready after, s",
        "command_s": "as a command, s",
        "creates_per_s": "creates per s",
        "kb_per_object": "KB per ConfigMap",
        "fan_out_per_s": "events per s to 100 watchers",
        "create_us_small": "one create, 100 objects, µs",
        "create_us_large": "one create, 100 000 objects, µs",
    },
)

_AT_ONCE = 16
_CREATES = 2_000
_KEPT = 10_000
_WATCHERS = 100
_SEEN = 100
_SINGLE = 300
_LARGE = 100_000


def measure(*, rounds: int = 3) -> dict[str, dict[str, float]]:
    """The figures of each plane."""
    return run(_measure(rounds))


async def _measure(rounds: int) -> dict[str, dict[str, float]]:
    gathered: dict[str, list[dict[str, float]]] = {name: [] for name in VARIANTS}
    for number in range(1, rounds + 1):
        for name in VARIANTS:
            with _plane(real=name == "real") as (record, ready):
                async with connect(Config.load(kubeconfig=Path(record.kubeconfig))) as client:
                    figures = await _figures(client, record, large=name == "embedded" and number == 1)
            gathered[name].append({"command_s": ready, **figures})
            say(f"round {number}, {name}: ready after {ready:.2f} s, {figures['creates_per_s']:.0f} creates per s")
    started = await asyncio.to_thread(interleaved, [["bench.planes", name] for name in VARIANTS], rounds=rounds)
    return {
        name: {**medians(figures), **ready} for (name, figures), ready in zip(gathered.items(), started, strict=True)
    }


@contextlib.contextmanager
def _plane(*, real: bool) -> Iterator[tuple[ClusterRecord, float]]:
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        record = background.start_in_background(
            background.ClusterOptions(name="bench", state=folder, real=real, pods=False)
        )
        ready = time.perf_counter() - started
        try:
            yield record, ready
        finally:
            background.stop_cluster(record)


async def _figures(client: Client, record: ClusterRecord, *, large: bool) -> dict[str, float]:
    await _create(client, "warm", 100)
    single = await _one_by_one(client, "small")
    started = time.perf_counter()
    await _create(client, "rate", _CREATES)
    rate = _CREATES / (time.perf_counter() - started)
    fan_out = await _fan_out(client)
    before = _resident_kb(record)
    await _create(client, "kept", _KEPT)
    figures = {
        "creates_per_s": rate,
        "kb_per_object": (_resident_kb(record) - before) / _KEPT,
        "fan_out_per_s": fan_out,
        "create_us_small": single,
    }
    if large:
        await _create(client, "many", _LARGE)
        figures["create_us_large"] = await _one_by_one(client, "large")
    return figures


def _config_map(name: str) -> ConfigMap:
    made = ConfigMap.named(name, "default")
    made.data = {"greeting": "hello" * 20, "name": name}
    return made


async def _create(client: Client, prefix: str, count: int) -> None:
    async def worker(first: int) -> None:
        for number in range(first, count, _AT_ONCE):
            await client.create(_config_map(f"{prefix}-{number}"))

    await asyncio.gather(*(worker(first) for first in range(_AT_ONCE)))


async def _one_by_one(client: Client, prefix: str) -> float:
    started = time.perf_counter()
    for number in range(_SINGLE):
        await client.create(_config_map(f"{prefix}-{number}"))
    return (time.perf_counter() - started) / _SINGLE * 1e6


async def _fan_out(client: Client) -> float:
    """Events per second until every watcher has seen every create."""
    watching = asyncio.Barrier(_WATCHERS + 1)

    async def watcher() -> None:
        version = (await client.list(ConfigMap, namespace="default", limit=1)).metadata.resource_version
        async with client.watch(ConfigMap, namespace="default", resource_version=version).raw() as events:
            await watching.wait()
            await _take(events, _SEEN)

    tasks = [asyncio.create_task(watcher()) for _ in range(_WATCHERS)]
    await watching.wait()
    started = time.perf_counter()
    await _create(client, "seen", _SEEN)
    await asyncio.gather(*tasks)
    return _WATCHERS * _SEEN / (time.perf_counter() - started)


async def _take(events: RawEvents, count: int) -> None:
    async for lines in events.batches():
        count -= len(lines)
        if count <= 0:
            return


def _resident_kb(record: ClusterRecord) -> float:
    return sum(_resident_of(pid) for pid in _processes(record))


def _processes(record: ClusterRecord) -> Sequence[int]:
    return [pid for pid in record.processes.values() if pid != os.getpid()]


def _resident_of(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    return 0.0


async def _child(name: str) -> None:
    """Start one plane in this process, and say how long it took."""
    started = time.perf_counter()
    async with embedded.EmbeddedCluster() if name == "embedded" else real.RealCluster():
        report(ready_s=time.perf_counter() - started)


if __name__ == "__main__":
    run(_child(sys.argv[1]))
