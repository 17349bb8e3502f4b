"""Tools for testing operators, and for testing Kubewright itself."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubewright.testing.round_trips import assert_round_trip

__all__ = ("assert_round_trip",)

_LATER = {"assert_round_trip": "kubewright.testing.round_trips"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'kubewright.testing' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
