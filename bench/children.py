"""Measure a piece of work in a process of its own: CPU time and growth of memory, nothing shared with the others.

A child prints one JSON line. Rounds of different children are interleaved, so that whatever else the machine does hits
all of them, and ratios are taken between medians.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

__all__ = ("interleaved", "report", "resident_bytes")


def resident_bytes() -> int:
    """The resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def report(**figures: float) -> None:
    """Called by a child: its figures, for the parent."""
    print(json.dumps(figures), flush=True)


def interleaved(
    modules: Sequence[Sequence[str]], *, rounds: int, environment: Mapping[str, str] | None = None
) -> list[dict[str, float]]:
    """Run `python -m` with each argument list in turn, several times over; the median of each figure."""
    gathered: list[dict[str, list[float]]] = [{} for _ in modules]
    for _ in range(rounds):
        for arguments, figures in zip(modules, gathered, strict=True):
            gc.collect()
            output = subprocess.run(
                [sys.executable, "-m", *arguments],
                check=True,
                capture_output=True,
                text=True,
                env={**os.environ, **(environment or {})},
            ).stdout
            for name, value in json.loads(output.splitlines()[-1]).items():
                figures.setdefault(name, []).append(value)
    return [{name: median(values) for name, values in figures.items()} for figures in gathered]
