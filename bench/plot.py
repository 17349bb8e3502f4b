"""A bar chart as SVG, drawn by hand: one group of bars per figure, each bar a ratio to the yardstick.

Small enough to be written here; a plotting library would be the largest dependency of the project.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Protocol

__all__ = ("bars",)

_COLOURS = ("#9aa0a6", "#1a73e8", "#34a853", "#a8dab5", "#ea4335", "#fbbc04")
_ROW, _GAP, _LEFT, _WIDTH, _MOST = 16, 26, 240, 420, 4.0
"""Ratios above `_MOST` are cut off and said in numbers."""


class ChartTable(Protocol):
    """The part of `report.Table` that a chart needs."""

    @property
    def yardstick(self) -> str: ...
    @property
    def variants(self) -> Mapping[str, str]: ...
    @property
    def columns(self) -> Mapping[str, str]: ...


def bars(table: ChartTable, results: Mapping[str, Mapping[str, float]]) -> str:
    """The ratios of every figure, as an SVG document."""
    base = results.get(table.yardstick, {})
    shown = [variant for variant in table.variants if variant in results]
    parts: list[str] = []
    y = 10
    for column, title in table.columns.items():
        if not base.get(column):
            continue
        parts.append(f'<text x="8" y="{y + 12}" font-weight="bold">{escape(title)}</text>')
        for place, variant in enumerate(shown):
            value = results[variant].get(column)
            if value is not None:
                parts.append(_bar(y + place * _ROW, table.variants[variant], value / base[column], place))
        y += len(shown) * _ROW + _GAP
    line = _LEFT + _WIDTH / _MOST
    rule = f'<line x1="{line}" y1="0" x2="{line}" y2="{y}" stroke="#5f6368" stroke-dasharray="3 3"/>'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 90}" height="{y}" '
        'font-family="sans-serif" font-size="11">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="#ffffff"/>', *parts, rule, "</svg>", ""])


def _bar(y: int, title: str, ratio: float, place: int) -> str:
    width = min(ratio, _MOST) / _MOST * _WIDTH
    colour = _COLOURS[place % len(_COLOURS)]
    return (
        f'<text x="{_LEFT - 8}" y="{y + 12}" text-anchor="end" fill="#5f6368">{escape(title[:34])}</text>'
        f'<rect x="{_LEFT}" y="{y + 2}" width="{width:.1f}" height="{_ROW - 4}" fill="{colour}"/>'
        f'<text x="{_LEFT + width + 5:.1f}" y="{y + 12}">{ratio:.2f}x</text>'
    )
