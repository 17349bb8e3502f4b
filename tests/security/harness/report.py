"""The table of a run, for a terminal and for the page `docs/request-costs.md`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.security.harness.catalogue import Outcome
from tests.security.harness.fuzzing.run import FuzzResult
from tests.security.harness.limits import HOLD_LIMIT, MEMORY_LIMIT

__all__ = ("PAGE", "RandomRun", "row", "write_page")

PAGE: Final = Path(__file__).parents[3] / "docs" / "request-costs.md"
_BEGIN: Final = "<!-- figures: written by make hostile -->\n"
_END: Final = "<!-- end of figures -->\n"


@dataclass(frozen=True, slots=True)
class RandomRun:
    """One run of requests at random, as the page tells of it."""

    what: str
    result: FuzzResult


def row(outcome: Outcome) -> str:
    """An outcome in a line."""
    attack, cost = outcome.attack, outcome.cost
    return (
        f"{attack.topic + '.' + attack.name:55} {attack.by:9} {cost.hold * 1000:8.0f} ms "
        f"(gc {cost.collection * 1000:4.0f}, wall {cost.wall * 1000:6.0f}) {cost.memory / 1e6:6.0f} MB "
        f"kept {cost.kept / 1e6:5.0f}  {outcome.answer:5} {' '.join(outcome.faults):12} {cost.place}"
    )


def write_page(outcomes: Iterable[Outcome], runs: Sequence[RandomRun], *, machine: str, page: Path = PAGE) -> None:
    """Replace the figures of the page; what people wrote around them stays."""
    text = page.read_text()
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    page.write_text(before + _BEGIN + _figures(list(outcomes), runs, machine) + _END + after)


def _figures(outcomes: list[Outcome], runs: Sequence[RandomRun], machine: str) -> str:
    lines = [
        "",
        f"Last run: {machine}.",
        "",
        "| Requests at random | sent | longest hold | most memory | beyond a limit |",
    ]
    lines.append("| --- | --: | --: | --: | --: |")
    lines += [
        f"| {run.what} | {run.result.sent:,} | {run.result.longest * 1000:.0f} ms | {run.result.largest / 1e6:.0f} MB "
        f"| {len(run.result.failures)} |"
        for run in runs
    ]
    broken = sum(any(outcome.faults) for outcome in outcomes)
    lines += [
        "",
        f"{len(outcomes)} attacks, {broken} beyond a limit ({HOLD_LIMIT * 1000:.0f} ms, {MEMORY_LIMIT / 1e6:.0f} MB).",
    ]
    for topic in dict.fromkeys(outcome.attack.topic for outcome in outcomes):
        lines += ["", f"## {topic.replace('_', ' ').capitalize()}", ""]
        lines += ["| What is sent | By | Longest hold | Memory | Answer |", "| --- | --- | --: | --: | --: |"]
        for outcome in outcomes:
            attack, cost = outcome.attack, outcome.cost
            if attack.topic == topic:
                what = attack.what.rstrip(".").replace("|", "\\|")
                hold = f"{cost.hold * 1000:.0f} ms{' **(too much)**' if any(outcome.faults) else ''}"
                memory = f"{cost.memory / 1e6:.0f} MB{', growing' if attack.grows else ''}"
                lines.append(f"| {what} | {attack.by} | {hold} | {memory} | {outcome.answer} |")
    return "\n".join([*lines, "", ""])
