"""What one event of a watch costs: a changed Pod of 5 KB, from the encrypted bytes to the cache and its handler.

A server of nothing but prepared bytes (`bench.replay`, a process of its own) sends a list of Pods and then changes,
over TLS and as fast as they are read; the child measures itself, so neither a server's speed nor its load counts.
With 1 000 Pods and with 100 000:

- `event_us`: CPU of the reading process per change;
- `kb_per_object`: resident memory per Pod, once the list is read.

Both should be the same for few and for many. `python -m bench.events COUNT` is one child.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time

from bench.children import interleaved, report, resident_bytes
from bench.replay import Replay
from bench.report import Budget, Table
from kubewright import Config, connect
from kubewright._base.loop import run
from kubewright.cache.cache import Cache
from kubewright.cache.memory import freeze_loaded
from kubewright.k8s.core.v1 import Pod

__all__ = ("TABLE", "measure")

_SIZES = {"few": 1_000, "many": 100_000}
_EVENTS = 20_000
TABLE = Table(
    title="One event of a watch: a changed Pod of 5 KB, over TLS, to the cache and its handler",
    intro="CPU of the process that reads. The budget is 20 µs, and the same for few objects and for many.",
    subject="many",
    yardstick="few",
    budgets=(Budget("event_us", "few", most=1.1), Budget("kb_per_object", "few", most=1.1)),
    variants={"few": "a cache of 1 000 Pods", "many": "a cache of 100 000 Pods"},
    columns={"event_us": "CPU per event, µs", "kb_per_object": "KB per Pod"},
)


def measure(*, rounds: int = 3) -> dict[str, dict[str, float]]:
    """The figures for each size of the cache."""
    results = interleaved([["bench.events", str(size)] for size in _SIZES.values()], rounds=rounds)
    return dict(zip(_SIZES, results, strict=True))


async def _child(size: int) -> None:
    async with Replay(objects=size, changes=_EVENTS) as replay:
        config = Config(server=replay.url, ca_data=replay.ca)
        async with connect(config) as client:
            cache = Cache(client)
            done = asyncio.Event()
            seen = 0

            def changed(*_: object) -> None:
                nonlocal seen
                seen += 1
                if seen == size + _EVENTS:
                    done.set()

            before = resident_bytes()
            with cache.use(Pod) as pods:
                pods.subscribe(changed)
                running = asyncio.create_task(cache.run())
                await cache.wait_for_sync()
                freeze_loaded()
                grown = resident_bytes() - before
                started = time.process_time()
                await replay.go()
                await done.wait()
                report(event_us=(time.process_time() - started) / _EVENTS * 1e6, kb_per_object=grown / size / 1e3)
                running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running


if __name__ == "__main__":
    run(_child(int(sys.argv[1])))
