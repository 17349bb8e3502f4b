"""A project in a virtual environment of its own, with nothing in it but what it asks for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import kubewright

from .conftest import API, output_of

ROOT = Path(kubewright.__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_make_test_and_make_lint_pass_in_a_fresh_environment(tmp_path: Path) -> None:
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("needs the source of Kubewright, from which it is installed")
    folder = tmp_path / "fresh-operator"
    folder.mkdir()
    await output_of((sys.executable, "-m", "venv", ".venv"), folder)
    python = folder / ".venv/bin/python"
    # The one dependency no index has yet; whatever else the project needs, its Makefile gets.
    await output_of((python, "-m", "pip", "install", "--quiet", f"{ROOT}[all]"), folder)
    command = folder / ".venv/bin/kubewright"
    await output_of((command, "init", "--domain", "example.io"), folder)
    await output_of((command, *API, "--kind", "PodSet"), folder)

    tested = await output_of(("make", "test"), folder)
    await output_of(("make", "lint"), folder)

    assert "2 passed" in tested
