"""Optional dependencies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kubewright._base.extras import optional
from kubewright.errors import ExtraMissing


def test_a_module_that_is_there_is_given() -> None:
    assert optional("json", extra="cli", purpose="Reading").loads("1") == 1


def test_a_missing_one_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "jinja2.environment", raising=False)  # another test may have had it

    with pytest.raises(ExtraMissing) as caught:
        optional("jinja2.environment", extra="cli", purpose="Rendering a project")

    assert str(caught.value) == (
        "Rendering a project needs `jinja2`, which is not installed; run: pip install 'kubewright[cli]'"
    )


def test_a_module_that_is_there_but_broken_says_so_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_installed.py").write_text("import not_there_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
        optional("half_installed", extra="cli", purpose="Rendering")
