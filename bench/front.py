"""The table on the front pages: the operators compared, in every language the README has.

`python -m bench` rewrites what stands between the two comments in each page; a test checks that it is what
`results.json` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ("PAGES", "front_table", "write_fronts")

_ROOT: Final = Path(__file__).parents[1]
_BEGIN: Final = "<!-- measured by make bench -->\n"
_END: Final = "<!-- end -->"
_VARIANTS: Final = ("kubewright", "go-default", "kopf")
_COLUMNS: Final = ("cpu_ms_per_object", "objects_per_s", "p50_ms", "p99_ms", "rss_mb", "writes_per_object")

PAGES: Final[Mapping[Path, tuple[str, ...]]] = {
    _ROOT / "README.md": (
        "CPU per object, ms",
        "objects per second",
        "a single change, median, ms",
        "a single change, 99 %, ms",
        "memory with 2 000 objects, MB",
        "writes per object",
    ),
    _ROOT / "README.zh.md": (
        "每个对象的 CPU 时间，毫秒",
        "每秒处理的对象数",
        "单次变更延迟中位数，毫秒",
        "单次变更延迟 99 分位，毫秒",
        "2 000 个对象时的内存，MB",
        "每个对象的写请求数",
    ),
}


def front_table(figures: Mapping[str, Mapping[str, float]], labels: tuple[str, ...]) -> str:
    """The table in Markdown; each cell has its ratio to Kubewright's."""
    lines = ["| | Kubewright | controller-runtime | kopf |", "| --- | --: | --: | --: |"]
    for label, column in zip(labels, _COLUMNS, strict=True):
        ours = figures["kubewright"][column]
        cells = [_cell(figures[variant][column], ours) for variant in _VARIANTS]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write_fronts(figures: Mapping[str, Mapping[str, float]]) -> None:
    """Put the table into every page; nothing where an operator was not measured."""
    if not all(variant in figures for variant in _VARIANTS):
        return
    for page, labels in PAGES.items():
        text = page.read_text(encoding="utf-8")
        before, _, rest = text.partition(_BEGIN)
        _, _, after = rest.partition(_END)
        page.write_text(f"{before}{_BEGIN}\n{front_table(figures, labels)}\n{_END}{after}", encoding="utf-8")


def _cell(value: float, ours: float) -> str:
    text = f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    return text if value is ours else f"{text} ({value / ours:.2f}x)"
