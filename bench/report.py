"""Turn figures into tables: for the terminal, and for `docs/benchmarks.md`.

A figure stands beside its ratio to the yardstick measured in the same run; the ratio is what counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median

import msgspec

from bench.plot import bars

__all__ = ("Budget", "Figures", "Table", "medians", "write_page")

Figures = Mapping[str, float]
Results = Mapping[str, Figures]

_HEAD = """# Benchmarks

Measured by `make bench`, which rewrites this page. Variants run interleaved in one run, each in a process of its own;
figures are medians over the rounds. Machines differ and are noisy: trust the ratios (in brackets, to the yardstick of
the same run), not the absolute figures.
"""


class Budget(msgspec.Struct, frozen=True):
    """How a figure of ours may stand to somebody else's: at most so many times it, or at least."""

    column: str
    against: str
    most: float | None = None
    least: float | None = None

    def met(self, ratio: float) -> bool:
        return (self.most is None or ratio <= self.most) and (self.least is None or ratio >= self.least)

    def __str__(self) -> str:
        return f"at most {self.most:g}x" if self.most is not None else f"at least {self.least:g}x"


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """How the figures of one benchmark are shown."""

    subject: str = "kubewright"
    """The variant the budgets are about."""
    budgets: tuple[Budget, ...] = ()

    title: str
    intro: str
    yardstick: str
    variants: Mapping[str, str]
    columns: Mapping[str, str]

    def rows(self, figures: Results) -> list[list[str]]:
        """A row for each variant that was measured."""
        base = figures.get(self.yardstick, {})
        rows = [["", *self.columns.values()]]
        for variant, title in self.variants.items():
            if variant in figures:
                rows.append([title, *(_cell(figures[variant], base, column) for column in self.columns)])
        return rows

    def text(self, figures: Results) -> str:
        """The table for a terminal."""
        rows = self.rows(figures)
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )

    def markdown(self, figures: Results) -> str:
        """The table for a page."""
        head, *body = ["| " + " | ".join(row) + " |" for row in self.rows(figures)]
        rule = "| --- |" + " --: |" * len(self.columns)
        return "\n".join([f"## {self.title}", "", self.intro, "", head, rule, *body, "", *self.verdicts(figures), ""])

    def verdicts(self, figures: Results) -> list[str]:
        """Whether each budget is met, as list items."""
        lines = []
        for budget in self.budgets:
            ours = figures.get(self.subject, {}).get(budget.column)
            theirs = figures.get(budget.against, {}).get(budget.column)
            if ours is not None and theirs:
                verdict = "met" if budget.met(ours / theirs) else "**not met**"
                lines.append(
                    f"- {self.columns[budget.column]}, against {self.variants[budget.against]}: "
                    f"{ours / theirs:.2f}x, budget {budget}: {verdict}"
                )
        return lines


def write_page(path: Path, tables: Mapping[str, Table], results: Mapping[str, Results], *, machine: str) -> None:
    """Write the page with every table there are figures for."""
    parts = [_HEAD, f"Last run: {machine}.\n"]
    if "operators" in results:
        plot = path.with_name("benchmarks.svg")
        plot.write_text(bars(tables["operators"], results["operators"]))
        parts.append(f"![The operators compared]({plot.name})\n")
    parts += [table.markdown(results[name]) for name, table in tables.items() if name in results]
    path.write_text("\n".join(parts))


def medians(rounds: Iterable[Figures]) -> dict[str, float]:
    """The median of each figure."""
    gathered: dict[str, list[float]] = {}
    for figures in rounds:
        for name, value in figures.items():
            gathered.setdefault(name, []).append(value)
    return {name: round(median(values), 4) for name, values in gathered.items()}


def _cell(figures: Mapping[str, float], base: Mapping[str, float], column: str) -> str:
    value = figures.get(column)
    if value is None:
        return "-"
    text = f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    yardstick = base.get(column)
    return f"{text} ({value / yardstick:.2f}x)" if yardstick else text
