"""A pytest plugin: the limits of pytest-timeout are extended where the machine is slow or busy.

    pytest -p kubewright.testing.timeouts

A test that would be ended goes on for as long as `time_limits` allows, so that a run which is only slow passes. It
works with the method `signal`, the default where there are signals; without pytest-timeout it does nothing. Whoever
does not load it has the limits as they were written.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Generator
from types import FrameType
from typing import Any, Protocol

import pytest

from kubewright.testing.time_limits import allowed_until, slowness

__all__ = ("pytest_report_header", "pytest_timeout_set_timer")


class Settings(Protocol):
    """What pytest-timeout knows of the limit of a test."""

    @property
    def timeout(self) -> float: ...

    @property
    def method(self) -> str: ...


def pytest_report_header() -> str:
    """Say how slow the machine is when the run begins."""
    return f"time limits: {slowness():.1f} times as long as written on this machine, at the moment"


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_timeout_set_timer(settings: Settings) -> Generator[None, Any, Any]:
    """Put a look at the machine before what ends the test."""
    begun = time.monotonic()
    answer = yield
    end_test = signal.getsignal(signal.SIGALRM) if settings.method == "signal" else None
    if callable(end_test):

        def reached(number: int, frame: FrameType | None) -> None:
            left = allowed_until(begun, settings.timeout) - time.monotonic()
            if left > 0:
                signal.setitimer(signal.ITIMER_REAL, left)
            else:
                end_test(number, frame)

        signal.signal(signal.SIGALRM, reached)
    return answer
