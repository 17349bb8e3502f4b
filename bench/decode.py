"""Decoding a 5 KB Pod: typed, against the standard library's json to dicts.

`python -m bench.decode VARIANT` is one child; `measure` runs them all, interleaved. Budget: typed decode at least 2x
faster and at most 0.6x the memory.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from bench.children import interleaved, report, resident_bytes
from bench.pods import pod_bytes

__all__ = ("measure",)

COUNT = 5_000
BATCH = 20
VARIANTS = {
    "json": "stdlib json to dict",
    "typed": "Kubewright, typed",
    "read": "Kubewright, typed and remembering its bytes (what the client returns)",
    "copy": "Kubewright, private copy (encode + decode)",
}


def measure(rounds: int = 3) -> dict[str, dict[str, float]]:
    """CPU microseconds and kilobytes per Pod, for each variant."""
    results = interleaved([["bench.decode", variant] for variant in VARIANTS], rounds=rounds)
    return dict(zip(VARIANTS, results, strict=True))


def _decoder(variant: str) -> Callable[[bytes], object]:
    if variant == "json":
        return json.loads
    from kubewright.api import codec
    from kubewright.k8s.core.v1 import Pod

    if variant == "typed":
        return lambda data: codec.decode(Pod, data)
    if variant == "read":
        return lambda data: codec.read(Pod, data)
    pod = codec.decode(Pod, pod_bytes(0))
    return lambda _: codec.copy_of(pod)


def _child(variant: str) -> None:
    decode = _decoder(variant)
    decode(pod_bytes(0))
    # Made batch by batch: the bytes that are read do not count, unless the object keeps them.
    before, spent, kept = resident_bytes(), 0.0, []
    for first in range(0, COUNT, BATCH):
        batch = [pod_bytes(number) for number in range(first, first + BATCH)]
        started = time.process_time()
        kept += [decode(data) for data in batch]
        spent += time.process_time() - started
        del batch
    grown = resident_bytes() - before
    report(microseconds=spent / COUNT * 1e6, kilobytes=grown / COUNT / 1e3)


if __name__ == "__main__":
    _child(sys.argv[1])
