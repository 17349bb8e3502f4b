"""The limits of pytest-timeout are extended where the machine is slow or busy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# The slowness is told, and not measured: it falls when the test has gone on for longer than its limit.
PLUGIN = """
from kubewright.testing import time_limits

asked = []

def slowness():
    asked.append(1)
    return {slowness}

time_limits.slowness = slowness
"""
TEST = """
import signal
import pytest
import told

@pytest.mark.timeout(0.2)
def test_slow():
    while not told.asked:
        signal.sigtimedwait([], 0.01)
"""
HANGING = """
import threading
import pytest

@pytest.mark.timeout(0.2)
def test_hanging():
    threading.Event().wait()
"""


def run(folder: Path, test: str, *, slowness: float) -> str:
    """What pytest prints about a test on a machine of this slowness."""
    (folder / "told.py").write_text(PLUGIN.format(slowness=slowness))
    (folder / "test_it.py").write_text(test)
    arguments = ("-q", "-p", "told", "-p", "kubewright.testing.timeouts", "-p", "no:cacheprovider", "--rootdir=.")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, "-c", os.devnull, "test_it.py"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_a_test_that_is_only_slow_goes_on(tmp_path: Path) -> None:
    assert "1 passed" in run(tmp_path, TEST, slowness=20)


def test_a_test_that_hangs_is_ended(tmp_path: Path) -> None:
    printed = run(tmp_path, HANGING, slowness=2)

    assert "Timeout (>0.2s) from pytest-timeout" in printed
    assert "1 failed" in printed
