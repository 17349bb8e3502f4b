"""The CEL environment of device selectors in DeviceClasses and ResourceClaims.

The variable `device` has a driver, attributes and capacities, the latter two by domain and name; unlike in the other
environments of Kubernetes there is `cel.bind` (k8s.io/dynamic-resource-allocation/cel/compile.go). The validation
of these kinds compiles the selectors; the scheduler of the embedded cluster evaluates them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from kubewright.cel.celtypes import BOOL, DYN, STRING, Field, map_of, object_type
from kubewright.cel.environment import Environment, Program
from kubewright.cel.errors import CompileError
from kubewright.cel.library.quantities import QUANTITY

__all__ = ("device_program",)

_DEVICE: Final = object_type(
    "kubernetes.DRADevice",
    {
        "driver": Field("driver", STRING),
        "attributes": Field("attributes", map_of(STRING, map_of(STRING, DYN))),
        "capacity": Field("capacity", map_of(STRING, map_of(STRING, QUANTITY))),
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
