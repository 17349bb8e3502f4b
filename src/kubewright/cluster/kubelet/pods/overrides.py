"""What one pod wants to be simulated differently: annotations.

| annotation `simulation.kubewright.io/...` | meaning |
| --- | --- |
| `start-delay` | seconds from the pod's arrival on the node to its containers |
| `ready-delay` | seconds a container runs until it is ready, on top of its probes' initial delay |
| `ready` | `false`: the containers never get ready; may be changed while the pod runs |
| `run-for` | seconds after which the containers end by themselves |
| `exit-code` | the code they then end with |
| `termination-delay` | seconds from the request to end until the containers do |
| `logs` | what the containers print, instead of what their command would |

Seconds are numbers, `0.25`, or text as in Go, `1m30s`. What cannot be read is ignored, and an event says so. Pure; read
by `pod_life`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import msgspec

from kubewright.api.times import Duration
from kubewright.errors import DecodeError

__all__ = ("PREFIX", "SimulationOverrides", "overrides_of")

PREFIX: Final = "simulation.kubewright.io/"
_SECONDS = {
    "start-delay": "start_delay",
    "ready-delay": "ready_delay",
    "run-for": "run_for",
    "termination-delay": "termination_delay",
}


@final
class SimulationOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """The annotations of one pod, read; None where nothing is said."""

    start_delay: float | None = None
    ready_delay: float | None = None
    ready: bool = True
    run_for: float | None = None
    exit_code: int | None = None
    termination_delay: float | None = None
    logs: str | None = None
    problems: tuple[str, ...] = ()
    """What could not be read, each in a sentence."""


def overrides_of(annotations: Mapping[str, str]) -> SimulationOverrides:
    """What the annotations ask for."""
    said = {name[len(PREFIX) :]: text for name, text in annotations.items() if name.startswith(PREFIX)}
    if not said:
        return _NONE
    values: dict[str, object] = {}
    problems: list[str] = []
    for name, text in said.items():
        try:
            field, value = _read(name, text.strip())
            values[field] = value
        except (ValueError, DecodeError):
            problems.append(f"the annotation {PREFIX}{name} with {text!r} is not understood and has no effect")
    return msgspec.convert({**values, "problems": problems}, SimulationOverrides)


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
