"""Figures of several operators: medians over rounds, and a table with ratios to one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

__all__ = ("Figures", "medians", "table")

Figures = Mapping[str, float]


def medians(rounds: Iterable[Figures]) -> dict[str, float]:
    """The median of each figure."""
    gathered: dict[str, list[float]] = {}
    for figures in rounds:
        for name, value in figures.items():
            gathered.setdefault(name, []).append(value)
    return {name: round(median(values), 4) for name, values in gathered.items()}


def table(results: Mapping[str, Figures], *, yardstick: str) -> str:
    """One line per operator: each figure and, in parentheses, how many times the yardstick's it is."""
    base = results.get(yardstick, {})
    columns = list(dict.fromkeys(name for figures in results.values() for name in figures))
    rows = [["operator", *columns]]
    for operator, figures in results.items():
        rows.append([operator, *(_cell(figures.get(name), base.get(name)) for name in columns)])
    return "\n".join(_aligned(rows))


def _cell(value: float | None, base: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4g} ({value / base:.2f}x)" if base else f"{value:.4g}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
