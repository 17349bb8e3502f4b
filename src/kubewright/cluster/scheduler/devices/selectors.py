"""CEL device selectors such as `device.attributes["gpu.example.com"].cores >= 8`.

The variable `device` has a driver, attributes and capacities, the latter two by domain and name. A name without a
domain has the driver's domain, and an unknown domain is an empty map. Caches compiled programs, not results;
`allocation` caches the results for one scheduling cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from kubewright.apiserver.expressions.devices import device_program
from kubewright.cel import STRING, Environment, EvaluationError, Program
from kubewright.cel.values import type_of
from kubewright.k8s.resource.v1 import Device, DeviceAttribute

__all__ = ("cel_device", "evaluate_selector", "matches_selector", "split_domain")

_NOTHING: Final[dict[str, Any]] = {}


class _Domains(dict[str, dict[str, Any]]):
    """Attributes or capacities by domain."""

    __slots__ = ()

    def get(self, key: str, default: Any = None) -> Any:
        """An unknown domain is empty."""
        return super().get(key, _NOTHING)


def matches_selector(expression: str, device: Mapping[str, Any]) -> bool:
    """Whether the expression is true for a device made by `cel_device`; CelError if it fails."""
    return evaluate_selector(device_program(expression), device)[0]


def evaluate_selector(program: Program, device: Mapping[str, Any]) -> tuple[bool, int]:
    """Whether a compiled expression is true for a device made by `cel_device`, and the cost; CelError if it fails."""
    verdict, cost = program.evaluate_with_cost({"device": device})
    if not isinstance(verdict, bool):
        raise EvaluationError(f"CEL result of type {type_of(verdict).name} could not be converted to bool")
    return verdict, cost


def cel_device(device: Device, driver: str) -> dict[str, Any]:
    """The variable `device` of an expression."""
    attributes, capacity = _Domains(), _Domains()
    for name, attribute in (device.attributes or {}).items():
        domain, own = split_domain(name, driver)
        attributes.setdefault(domain, {})[own] = _value(attribute)
    for name, amount in (device.capacity or {}).items():
        domain, own = split_domain(name, driver)
        capacity.setdefault(domain, {})[own] = _read("quantity(text)", str(amount.value))
    return {"driver": driver, "attributes": attributes, "capacity": capacity}


def split_domain(name: str, driver: str) -> tuple[str, str]:
    """Domain and name of an attribute or a capacity."""
    domain, slash, own = name.partition("/")
    return (domain, own) if slash else (driver, name)


def _value(attribute: DeviceAttribute) -> object:
    if attribute.version is not None:
        return _read("semver(text)", attribute.version)
    values = (attribute.int_, attribute.bool_, attribute.string)
    return next((value for value in values if value is not None), None)


def _read(expression: str, text: str) -> object:
    return _reader(expression).evaluate({"text": text})


@lru_cache(maxsize=2)
def _reader(expression: str) -> Program:
    return Environment({"text": STRING}).compile(expression)
