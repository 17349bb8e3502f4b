"""A module that is hardly tested needs a reason; a reason needs a module.

Covers: tests.coverage_report
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.coverage_report import REASONS, ROOT, check, module_of, reasons_in


def test_a_low_module_without_a_reason_is_a_failure() -> None:
    verdict = check({"kubewright.a": 69.9, "kubewright.b": 70.0}, 70.0, {})

    assert verdict.failed
    assert verdict.lines[0] == "  69.9 %  kubewright.a: NO REASON"
    assert verdict.lines[-1] == "  70.0 %  of 2 modules, lines and branches"


def test_a_low_module_with_a_reason_is_none() -> None:
    verdict = check({"kubewright.a": 12.0}, 12.0, {"kubewright.a": "runs in a process of its own"})

    assert not verdict.failed
    assert verdict.lines[0] == "  12.0 %  kubewright.a: runs in a process of its own"


def test_a_reason_for_a_module_that_is_gone_is_a_failure() -> None:
    verdict = check({"kubewright.a": 90.0}, 90.0, {"kubewright.gone": "was here once"})

    assert verdict.failed
    assert "coverage_reasons.txt names kubewright.gone, which is not there" in verdict.lines


def test_a_reason_that_is_no_longer_needed_is_told() -> None:
    verdict = check({"kubewright.a": 90.0}, 90.0, {"kubewright.a": "hard to reach"})

    assert not verdict.failed
    assert "kubewright.a has 90.0 % and needs no reason any more" in verdict.lines


def test_a_line_without_a_reason_is_refused() -> None:
    assert reasons_in("# why\n\nkubewright.a: because: of this\n") == {"kubewright.a": "because: of this"}
    with pytest.raises(SystemExit, match=r"no reason beside kubewright\.b"):
        reasons_in("kubewright.b\n")


def test_the_committed_reasons_name_modules_that_are_there() -> None:
    modules = {module_of(path) for path in (ROOT / "src/kubewright").rglob("*.py")}

    assert reasons_in(REASONS.read_text()).keys() - modules == set()


def test_a_path_becomes_a_module() -> None:
    assert module_of(Path("src/kubewright/cli/main.py")) == "kubewright.cli.main"
    assert module_of(Path("/kubewright/src/kubewright/cli/__init__.py")) == "kubewright.cli"
