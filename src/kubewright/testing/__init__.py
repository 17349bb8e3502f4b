"""Tools for testing operators, and for testing Kubewright itself."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubewright.testing.clock import VirtualClock
    from kubewright.testing.examples import example_of
    from kubewright.testing.faults import FaultyTransport, status
    from kubewright.testing.operators import RunningOperator, running
    from kubewright.testing.round_trips import assert_round_trip
    from kubewright.testing.waiting import gone, until

__all__ = (
    "FaultyTransport",
    "RunningOperator",
    "VirtualClock",
    "assert_round_trip",
    "example_of",
    "gone",
    "running",
    "status",
    "until",
)

_LATER = {
    "FaultyTransport": "kubewright.testing.faults",
    "RunningOperator": "kubewright.testing.operators",
    "VirtualClock": "kubewright.testing.clock",
    "assert_round_trip": "kubewright.testing.round_trips",
    "example_of": "kubewright.testing.examples",
    "gone": "kubewright.testing.waiting",
    "running": "kubewright.testing.operators",
    "status": "kubewright.testing.faults",
    "until": "kubewright.testing.waiting",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'kubewright.testing' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
