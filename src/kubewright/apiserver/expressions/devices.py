"""The CEL environment of device selectors in DeviceClasses and ResourceClaims.

The variable `device` has a driver, attributes and capacities, the latter two by domain and name; unlike in the other
environments of Kubernetes there is `cel.bind` (k8s.io/dynamic-resource-allocation/cel/compile.go). The validation
of these kinds compiles the selectors; the scheduler of the embedded cluster evaluates them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from kubewright.cel.celtypes import BOOL, DYN, STRING, CelType, Field, SchemaDetails, map_of, object_type
from kubewright.cel.environment import Environment, Program
from kubewright.cel.errors import CompileError
from kubewright.cel.library.quantities import QUANTITY

__all__ = ("MAX_COST", "device_program")

MAX_COST: Final = 1_000_000
"""The largest estimated cost of a selector: CELSelectorExpressionMaxCost in k8s.io/api/resource/v1."""


def _at_most(size: int, kind: CelType) -> CelType:
    return replace(kind, details=SchemaDetails(max_size=size))


# The limits of k8s.io/api/resource/v1, from which the cost is estimated.
_ATTRIBUTE: Final = _at_most(64, DYN)
_DOMAIN: Final = _at_most(63, STRING)
_NAME: Final = _at_most(32, STRING)
_ENTRIES: Final = SchemaDetails(max_size=32)
_DEVICE: Final = object_type(
    "kubernetes.DRADevice",
    {
        "driver": Field("driver", _DOMAIN),
        "attributes": Field(
            "attributes", map_of(_DOMAIN, map_of(_NAME, _ATTRIBUTE, details=_ENTRIES), details=_ENTRIES)
        ),
        "capacity": Field("capacity", map_of(_DOMAIN, map_of(_NAME, QUANTITY, details=_ENTRIES), details=_ENTRIES)),
    },
)


@lru_cache(maxsize=256)
def device_program(expression: str) -> Program:
    """The compiled expression; raises CompileError if it does not compile or cannot give a bool."""
    program = Environment({"device": _DEVICE}, bind=True).compile(expression)
    if program.type not in (BOOL, DYN):
        problem = f"must evaluate to bool or the unknown type, not {program.type}"
        raise CompileError(expression, [], failure=problem)
    return program
