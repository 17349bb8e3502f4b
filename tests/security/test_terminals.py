"""What a cluster says does not steer the terminal of the developer who asked it.

Covers: kubewright.cli
"""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from kubewright.cli.commands.tree import _draw
from kubewright.cli.tables import print_table
from kubewright.cli.terminals import visible

STEERING = "ok\x1b]0;title\x07\x1b[2J\r\x08\x9b1m\u202e\x00[bold]"


def _steers(printed: str) -> bool:
    return not printed.replace("\n", "").isprintable()


@pytest.mark.parametrize("text", [STEERING, "\x1b", "a\rb", "\u2028", "\udc80"], ids=ascii)
def test_text_is_shown_and_not_obeyed(text: str) -> None:
    assert not _steers(visible(text))


@pytest.mark.parametrize("text", ["plain", "two\nlines", "Grüße 世界 😀"], ids=ascii)
def test_what_prints_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_a_tree_of_objects_shows_a_condition_of_somebody_else() -> None:
    node = {
        "kind": STEERING,
        "name": STEERING,
        "deleting": True,
        "phase": STEERING,
        "conditions": [{"type": STEERING, "status": STEERING, "reason": STEERING}],
        "children": [],
    }
    output = io.StringIO()

    Console(file=output, width=1000, color_system=None).print(_draw(node), soft_wrap=True)

    assert not _steers(output.getvalue())
    assert "[bold]" in output.getvalue()


def test_a_table_shows_a_cell_of_somebody_else(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["NAME"], [[STEERING]])

    assert not _steers(capsys.readouterr().out)
