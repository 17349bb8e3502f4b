"""Run the benchmarks, print their tables, and write `bench/results.json`, `docs/benchmarks.md` and the READMEs' table.

    python -m bench [decode] [get] [operators] [cache] [events] [planes] [webhooks] [modelboxes]

Without names, all of them. What a run leaves out keeps the figures of the last run that had it.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import json
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

from bench import cache, decode, events, get, modelboxes, operators, planes, webhooks
from bench.front import write_fronts
from bench.report import Budget, Table, write_page

ROOT = Path(__file__).parent
RESULTS = ROOT / "results.json"
PAGE = ROOT.parent / "docs" / "benchmarks.md"
Figures = dict[str, dict[str, float]]


def measure(name: str, *, rounds: int) -> Figures:
    """The figures of one benchmark, by variant."""
    if name == "decode":
        return decode.measure(rounds)
    if name == "get":
        return asyncio.run(get.measure(rounds))
    if name == "operators":
        return operators.measure(rounds=rounds)
    if name == "cache":
        return cache.measure(rounds=rounds)
    if name == "events":
        return events.measure(rounds=rounds)
    if name == "planes":
        return planes.measure(rounds=rounds)
    if name == "webhooks":
        return webhooks.measure(rounds=rounds)
    if name == "modelboxes":
        return modelboxes.measure()
    raise SystemExit(f"no benchmark named {name}; there are: {', '.join(TABLES)}")


TABLES: Mapping[str, Table] = {
    "decode": Table(
        title="Decoding a 5 KB Pod",
        intro="CPU and memory kept per object, each variant in its own process, garbage collection included.",
        subject="typed",
        budgets=(Budget("microseconds", "json", most=0.5), Budget("kilobytes", "json", most=0.6)),
        yardstick="json",
        variants=decode.VARIANTS,
        columns={"microseconds": "CPU per Pod, µs", "kilobytes": "memory per Pod, KB"},
    ),
    "get": Table(
        title="A typed GET of a Pod from a real kube-apiserver",
        intro="Client CPU per request, TLS, keep-alive, one after the other.",
        budgets=(Budget("microseconds", "kubernetes_asyncio", most=0.5),),
        yardstick="kubernetes_asyncio",
        variants=get.VARIANTS,
        columns={"microseconds": "CPU per GET, µs"},
    ),
    "operators": operators.TABLE,
    "cache": cache.TABLE,
    "events": events.TABLE,
    "planes": planes.TABLE,
    "webhooks": webhooks.TABLE,
    "modelboxes": modelboxes.TABLE,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("names", nargs="*", choices=[*TABLES, []], help="which benchmarks; all if none is named")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured; the median counts")
    options = parser.parse_args()
    # As pip does when it installs a package; the peers were installed by it. Else each start would compile everything.
    compileall.compile_dir(ROOT.parent / "src", quiet=1)
    results: dict[str, Figures] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.names or TABLES:
        print(f"{TABLES[name].title} ...", flush=True)
        results[name] = measure(name, rounds=options.rounds)
        print(TABLES[name].text(results[name]), flush=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    write_page(PAGE, TABLES, results, machine=machine)
    write_fronts(results.get("operators", {}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
