"""Tests of the real control plane run where it can be had; where they are skipped, the end of the run says so.

Covers: tests.conftest
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
ASKING = "def test_one(real_binaries): pass\ndef test_two(real_binaries): pass\ndef test_three(): pass\n"


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Three tests, two of which ask for a real control plane, on a machine that has none."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("KUBEWRIGHT_CACHE", str(pytester.path / "empty"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.delenv("KUBEWRIGHT_REAL", raising=False)
    pytester.makeconftest("from tests.conftest import pytest_terminal_summary, real_binaries")
    pytester.makepyfile(ASKING)
    return pytester


def test_the_end_of_the_run_says_how_many_were_skipped_and_why(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess()

    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "!!!* 2 tests SKIPPED: they ask a real control plane !!!*",
            "no real control plane; `make binaries` gets one: No etcd*",
        ]
    )


def test_tests_that_are_left_out_on_purpose_are_counted_too(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEWRIGHT_REAL", "0")

    result = suite.runpytest_subprocess()

    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["!!!* 2 tests SKIPPED*", "no real control plane: KUBEWRIGHT_REAL=0 leaves it out"])


def test_where_it_is_demanded_a_missing_binary_is_a_failure(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEWRIGHT_REAL", "1")

    suite.runpytest_subprocess().assert_outcomes(passed=1, errors=2)


def commands_of(folder: Path, **said: str) -> str:
    """What `make binaries` would run where only make and a shell are found."""
    make = shutil.which("make")
    assert make is not None
    done = subprocess.run(
        [make, "--dry-run", "binaries"],
        cwd=ROOT,
        env={"PATH": str(folder), "HOME": str(folder), "PYTHON": "python3", **said},
        capture_output=True,
        text=True,
        check=True,
    )
    return next(line for line in done.stdout.splitlines() if "cluster binaries" in line)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_demands_it_where_binaries_or_a_go_are_found(tmp_path: Path) -> None:
    assert "--or-say-why" in commands_of(tmp_path)
    assert "--or-say-why" not in commands_of(tmp_path, KUBEBUILDER_ASSETS=os.devnull)
    assert "--or-say-why" not in commands_of(tmp_path, KUBEWRIGHT_REAL="1")
    assert 'test "0" = 0 ||' in commands_of(tmp_path, KUBEWRIGHT_REAL="0")

    cached = tmp_path / ".cache/kubewright/control-plane/1.35.4-linux-amd64/etcd"
    cached.parent.mkdir(parents=True)
    cached.touch()
    assert "--or-say-why" not in commands_of(tmp_path)

    shutil.rmtree(tmp_path / ".cache")
    (tmp_path / "go").touch(mode=0o755)
    assert "--or-say-why" not in commands_of(tmp_path)
