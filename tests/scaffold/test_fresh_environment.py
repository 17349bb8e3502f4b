"""A project in a virtual environment of its own, with nothing in it but what its Makefile puts there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import kubewright

from .conftest import API, HOOK, output_of

ROOT = Path(kubewright.__file__).parents[2]
WHEELS = ROOT / "build/wheels"


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_make_test_and_make_lint_pass_in_a_fresh_environment(tmp_path: Path) -> None:
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("needs the source of Kubewright, from which it is installed")
    if not (WHEELS / ".complete").exists():
        pytest.skip("what a project installs has not been downloaded; `make wheels` does that")
    # Nothing is downloaded here: how long that takes says nothing about the project.
    alone = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELS), "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(WHEELS)}
    folder = tmp_path / "fresh-operator"
    folder.mkdir()
    kubewright = (sys.executable, "-m", "kubewright.cli")
    await output_of((*kubewright, "init", "--domain", "example.io"), folder)
    await output_of((*kubewright, *API, "--kind", "PodSet"), folder)
    await output_of((*kubewright, *HOOK, "--kind", "PodSet", "--defaulting", "--validation"), folder)
    # The one dependency no index has yet.
    make = ("make", f"PYTHON={sys.executable}", f"KUBEWRIGHT=--editable {ROOT}")

    tested = await output_of((*make, "test"), folder, **alone)
    await output_of((*make, "lint"), folder)
    await output_of((folder / ".venv/bin/kubewright", "generate", "--check"), folder)

    assert "4 passed" in tested
    assert (folder / ".venv/bin/python").exists()

    # A lock by hash, and what the Dockerfile does with it.
    wheels = tmp_path / "wheels"
    await output_of((sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheels), ROOT)
    await output_of((*make, "lock"), folder, **alone | {"UV_FIND_LINKS": f"{wheels},{WHEELS}"})
    lock = (folder / "requirements.lock").read_text()
    pins = [line for line in lock.splitlines() if "==" in line]
    assert {line.partition("==")[0] for line in pins} >= {"kubewright", "aiohttp", "msgspec"}
    assert [line for line in pins if not line.endswith("\\")] == []  # a hash follows each
    assert "://" not in lock
    steps = [line.removeprefix("RUN ") for line in (folder / "Dockerfile").read_text().splitlines() if "pip " in line]
    for step in steps:
        here = step.replace("/app", "app").replace("pip install", ".venv/bin/python -m pip install --quiet")
        await output_of(("sh", "-c", here), folder, **alone | {"PIP_FIND_LINKS": f"{wheels} {WHEELS}"})
    for name in ("kubewright", "msgspec", "fresh_operator"):
        assert (folder / "app" / name).is_dir()

    # A file that is not the one that was locked is refused.
    (folder / "requirements.lock").write_text(re.sub(r"sha256:.{8}", "sha256:00000000", lock))
    with pytest.raises(AssertionError, match="DO NOT MATCH THE HASHES"):
        await output_of(
            ("sh", "-c", steps[0].replace("/app", "other").replace("pip", ".venv/bin/python -m pip", 1)), folder,
            **alone | {"PIP_FIND_LINKS": f"{wheels} {WHEELS}"},
        )  # fmt: skip
