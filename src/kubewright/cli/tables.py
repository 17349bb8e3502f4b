"""Tables on standard output: drawn for a terminal, plain aligned columns for a program.

Only a terminal gets colours; piped lines are never broken.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from kubewright.cli.terminals import visible

__all__ = ("print_table",)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, colours: Sequence[str] = ()) -> None:
    """Print rows under a header; `colours` has one for the first cell of each row."""
    rows = [[visible(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(header, rows, colours)
        return
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def _draw(header: Sequence[str], rows: Sequence[Sequence[str]], colours: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*header, box=None, pad_edge=False, header_style="bold")
    for number, row in enumerate(rows):
        first = Text(row[0], style=colours[number] if colours else "")
        table.add_row(first, *(Text(cell, overflow="fold") for cell in row[1:]))
    Console(highlight=False).print(table)
