"""Simulation overrides: annotations of a pod that change how it is simulated.

| annotation `simulation.kubewright.io/...` | meaning |
| --- | --- |
| `start-delay` | seconds from the binding of the pod to the start of its containers |
| `ready-delay` | seconds a container runs until it is ready, on top of its probes' initial delay |
| `ready` | `false`: the containers are never ready; may be changed while the pod runs |
| `run-for` | seconds after which the containers exit |
| `exit-code` | their exit code |
| `termination-delay` | seconds from the start of termination until the containers have ended |
| `logs` | the output of the containers, instead of that of their command |

Seconds are numbers, `0.25`, or Go durations, `1m30s`. An invalid annotation is ignored, and an event reports it. Pure;
called by `lifecycle`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import msgspec

from kubewright.api.times import Duration
from kubewright.errors import DecodeError

__all__ = ("PREFIX", "SimulationOverrides", "read_overrides")

PREFIX: Final = "simulation.kubewright.io/"
_SECONDS = {
    "start-delay": "start_delay",
    "ready-delay": "ready_delay",
    "run-for": "run_for",
    "termination-delay": "termination_delay",
}


@final
class SimulationOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """The decoded annotations of one pod; None if an annotation is not set."""

    start_delay: float | None = None
    ready_delay: float | None = None
    ready: bool = True
    run_for: float | None = None
    exit_code: int | None = None
    termination_delay: float | None = None
    logs: str | None = None
    errors: tuple[str, ...] = ()
    """A message for each invalid annotation."""


def read_overrides(annotations: Mapping[str, str]) -> SimulationOverrides:
    """Decode the annotations."""
    annotated = {name[len(PREFIX) :]: text for name, text in annotations.items() if name.startswith(PREFIX)}
    if not annotated:
        return _NONE
    values: dict[str, object] = {}
    errors: list[str] = []
    for name, text in annotated.items():
        try:
            field, value = _read(name, text.strip())
            values[field] = value
        except (ValueError, DecodeError):
            errors.append(f"the annotation {PREFIX}{name} with {text!r} is not understood and has no effect")
    return msgspec.convert({**values, "errors": errors}, SimulationOverrides)


_NONE = SimulationOverrides()


def _read(name: str, text: str) -> tuple[str, object]:
    if name in _SECONDS:
        plain = text.replace(".", "", 1).isdecimal()
        seconds = float(text) if plain else Duration(text).seconds
        if seconds < 0:
            raise ValueError(text)
        return _SECONDS[name], seconds
    if name == "ready" and text in ("true", "false"):
        return name, text == "true"
    if name == "exit-code":
        return "exit_code", int(text) & 255
    if name == "logs":
        return name, text
    raise ValueError(name)
