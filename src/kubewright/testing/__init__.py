"""Tools for testing operators: an operator under its own roles, waits that watch, faults, a virtual clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy

if TYPE_CHECKING:
    from kubewright.testing.clock import VirtualClock
    from kubewright.testing.examples import example_of
    from kubewright.testing.faults import FaultyTransport, status
    from kubewright.testing.operators import RunningOperator, running
    from kubewright.testing.round_trips import assert_round_trip
    from kubewright.testing.time_limits import time_limit
    from kubewright.testing.waiting import gone, until
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.testing.clock": ("VirtualClock",),
            "kubewright.testing.examples": ("example_of",),
            "kubewright.testing.faults": ("FaultyTransport", "status"),
            "kubewright.testing.operators": ("RunningOperator", "running"),
            "kubewright.testing.round_trips": ("assert_round_trip",),
            "kubewright.testing.time_limits": ("time_limit",),
            "kubewright.testing.waiting": ("gone", "until"),
        },
    )

__all__ = (
    "FaultyTransport",
    "RunningOperator",
    "VirtualClock",
    "assert_round_trip",
    "example_of",
    "gone",
    "running",
    "status",
    "time_limit",
    "until",
)
