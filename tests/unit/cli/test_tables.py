"""Tables, for people and for programs."""

from __future__ import annotations

import io
import re
import sys

import pytest

from kubewright.cli.tables import print_table

HEADER = ("NAME", "ADDRESS")
ROWS = (("main", "https://127.0.0.1:6443/" + "a" * 200), ("other [one]", "none"))


def test_what_is_piped_has_aligned_columns_and_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(HEADER, ROWS, colours=("red", "green"))

    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "NAME         ADDRESS"
    assert second == f"main         {ROWS[0][1]}"
    assert third == "other [one]  none"


def test_a_terminal_gets_colours_and_lines_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout", Terminal())
    print_table(HEADER, ROWS, colours=("red", "green"))

    shown = sys.stdout
    assert isinstance(shown, Terminal)
    assert "\x1b[31mmain" in shown.getvalue()
    assert "other [one]" in shown.getvalue()
    assert all(len(line) <= 60 for line in re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue()).splitlines())
