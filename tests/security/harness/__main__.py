"""The command line of the harness.

    python -m tests.security.harness                      # everything; --page writes docs/request-costs.md
    python -m tests.security.harness catalogue -k yaml    # some attacks
    python -m tests.security.harness fuzz --seed 7 --requests 5000
    python -m tests.security.harness replay build/hostile/7-0.json

It ends with 1 if a request broke a limit, killed the server, or was answered 500 where kube-apiserver does not.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import secrets
import sys
from pathlib import Path
from typing import Final

from tests.security.harness import attacks  # noqa: F401 - fills the register
from tests.security.harness.attack import ATTACKS
from tests.security.harness.catalogue import Outcome, peers_of, run_attacks
from tests.security.harness.fuzzing.minimizing import minimized, replayed
from tests.security.harness.fuzzing.run import Failure, FuzzResult, document, fuzz, send_all
from tests.security.harness.fuzzing.schemathesis_requests import DOCUMENTS, schemathesis_requests
from tests.security.harness.report import RandomRun, row, write_page
from tests.security.harness.watched_process import WatchedProcess

FAILURES: Final = Path("build/hostile")
"""Where failures are kept."""
_EACH: Final = 4
"""Requests of schemathesis that fit an operation, and as many that do not."""


async def _catalogue(options: argparse.Namespace) -> list[Outcome]:
    chosen = [each for each in ATTACKS if options.k in f"{each.topic}.{each.name}"]
    outcomes = []
    async for outcome in run_attacks(chosen, alone=options.alone):
        outcomes.append(outcome)
        print(row(outcome), flush=True)
    broken = [outcome for outcome in outcomes if any(outcome.faults)]
    print(f"{len(outcomes)} attacks, {len(broken)} beyond the limits", flush=True)
    return outcomes


async def _schemathesis(options: argparse.Namespace) -> FuzzResult:
    print(f"python -m tests.security.harness schemathesis --seed {options.seed}", flush=True)
    result = FuzzResult()
    for name in DOCUMENTS:
        async with WatchedProcess("served_cluster", "--alone") as watched:
            tree = await document(peers_of(watched.ready, "apiserver")["admin"], f"/{name}")
            requests = await asyncio.to_thread(
                lambda tree=tree: list(schemathesis_requests(tree, drawn=options.seed, each=_EACH))  # type: ignore[misc]
            )
            await send_all(watched, requests, result, alone=True)
        print(f"{result} after {name}", flush=True)
    await _tell(result, "schemathesis", options)
    return result


async def _fuzz(options: argparse.Namespace) -> FuzzResult:
    print(f"python -m tests.security.harness fuzz --seed {options.seed} --requests {options.requests}", flush=True)
    numbers = range(options.start, options.start + options.requests)
    result = await fuzz(options.seed, numbers, progress=True)
    await _tell(result, "fuzz", options)
    return result


async def _tell(result: FuzzResult, name: str, options: argparse.Namespace) -> None:
    """Say what failed, each made small and kept in a file."""
    print(dict(sorted(result.codes.items())))
    for number, failure in enumerate(result.failures):
        times = result.repeated[f"{failure.fault} {failure.place}"]
        small = await minimized(failure) if options.minimize else failure
        path = small.write(FAILURES, f"{name}-{options.seed}-{number}")
        cost = f"{failure.cost.hold * 1000:6.0f} ms {failure.cost.memory / 1e6:5.0f} MB"
        print(f"{small.fault:15} {times:4} times  {cost}  {failure.answer}")
        print(f"    {failure.place}")
        print(f"    python -m tests.security.harness replay {path}", flush=True)


async def _replay(options: argparse.Namespace) -> int:
    failure = Failure.read(options.file)
    for request in failure.requests:
        print(f"{request.who}: {request.data[:400]!r}{' ...' if len(request.data) > 400 else ''}")
    fault, answer, cost = await replayed(failure.requests, alone=failure.alone)
    print(f"{fault or 'well'}: {answer} {answer.body[:600]!r}" if answer else fault)
    print(f"{cost.hold * 1000:.0f} ms, {cost.memory / 1e6:.0f} MB {cost.place}")
    return 1 if fault else 0


async def _everything(options: argparse.Namespace) -> int:
    outcomes = await _catalogue(options)
    drawn = await _schemathesis(options)
    fuzzed = await _fuzz(options)
    if options.page:
        runs = [RandomRun("drawn by schemathesis", drawn), RandomRun("spoilt by the fuzzer", fuzzed)]
        machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, seed {options.seed}"
        write_page(outcomes, runs, machine=machine)
    broken = any(any(outcome.faults) for outcome in outcomes)
    return 1 if broken or drawn.failures or fuzzed.failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.security.harness")
    parts = ("all", "catalogue", "schemathesis", "fuzz", "replay")
    parser.add_argument("part", nargs="?", default="all", choices=parts)
    parser.add_argument("file", nargs="?", type=Path, help="a failure to send again")
    parser.add_argument("-k", default="", help="only attacks whose topic.name contains this")
    parser.add_argument("--alone", action="store_true", help="the API server without controllers and nodes")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32), help="of the requests at random")
    parser.add_argument("--start", type=int, default=0, help="the number of the first request at random")
    parser.add_argument("--requests", type=int, default=100_000, help="how many requests at random")
    parser.add_argument("--page", action="store_true", help="write the figures of all parts into the documentation")
    parser.add_argument("--no-minimize", dest="minimize", action="store_false", help="keep failures as they are")
    options = parser.parse_args()
    if options.part == "replay":
        return asyncio.run(_replay(options))
    if options.part == "catalogue":
        return 1 if any(any(outcome.faults) for outcome in asyncio.run(_catalogue(options))) else 0
    if options.part == "all":
        return asyncio.run(_everything(options))
    result = asyncio.run(_schemathesis(options) if options.part == "schemathesis" else _fuzz(options))
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
