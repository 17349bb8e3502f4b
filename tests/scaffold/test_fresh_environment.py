"""A project in a virtual environment of its own, with nothing in it but what its Makefile puts there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import kubewright

from .conftest import API, HOOK, output_of

ROOT = Path(kubewright.__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_make_test_and_make_lint_pass_in_a_fresh_environment(tmp_path: Path) -> None:
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("needs the source of Kubewright, from which it is installed")
    folder = tmp_path / "fresh-operator"
    folder.mkdir()
    kubewright = (sys.executable, "-m", "kubewright.cli")
    await output_of((*kubewright, "init", "--domain", "example.io"), folder)
    await output_of((*kubewright, *API, "--kind", "PodSet"), folder)
    await output_of((*kubewright, *HOOK, "--kind", "PodSet", "--defaulting", "--validation"), folder)
    # The one dependency no index has yet; whatever else the project needs comes from there.
    make = ("make", f"PYTHON={sys.executable}", f"KUBEWRIGHT=--editable {ROOT}")

    tested = await output_of((*make, "test"), folder)
    await output_of((*make, "lint"), folder)
    await output_of((folder / ".venv/bin/kubewright", "generate", "--check"), folder)

    assert "4 passed" in tested
    assert (folder / ".venv/bin/python").exists()
