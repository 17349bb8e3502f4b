"""The command line of the harness."""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.security.harness import attacks  # noqa: F401 - fills the register
from tests.security.harness.attack import ATTACKS
from tests.security.harness.catalogue import Outcome, run_attacks


async def _catalogue(options: argparse.Namespace) -> list[Outcome]:
    chosen = [each for each in ATTACKS if options.k in f"{each.topic}.{each.name}"]
    outcomes = []
    async for outcome in run_attacks(chosen, alone=options.alone):
        outcomes.append(outcome)
        cost = outcome.cost
        print(
            f"{outcome.attack.topic + '.' + outcome.attack.name:55} {outcome.attack.by:9} "
            f"{cost.hold * 1000:8.0f} ms (gc {cost.collection * 1000:4.0f}, wall {cost.wall * 1000:6.0f}) "
            f"{cost.memory / 1e6:6.0f} MB kept {cost.kept / 1e6:5.0f}  {outcome.answer:5} "
            f"{' '.join(outcome.faults):12} {cost.place}",
            flush=True,
        )
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.security.harness")
    parser.add_argument("part", nargs="?", default="catalogue", choices=("catalogue",))
    parser.add_argument("-k", default="", help="only attacks whose topic.name contains this")
    parser.add_argument("--alone", action="store_true", help="the API server without controllers and nodes")
    options = parser.parse_args()
    outcomes = asyncio.run(_catalogue(options))
    broken = [outcome for outcome in outcomes if any(outcome.faults)]
    print(f"{len(outcomes)} attacks, {len(broken)} beyond the limits")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
