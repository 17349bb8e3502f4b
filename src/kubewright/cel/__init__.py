"""The expression language of CRDs and policies: CEL as Kubernetes has it.

    from kubewright.cel import BOOL, Environment, type_of_schema

    environment = Environment({"self": type_of_schema({"type": "object", "properties": {"n": {"type": "integer"}}})})
    environment.compile("self.n > 0", expect=BOOL).evaluate({"self": {"n": 3}})  # True

`parsing` parses the text, `checker` and `validators` check it, and `compiler` compiles it to closures. A budget bounds
the evaluation, and `cost` estimates beforehand what it can cost at most. Messages, costs and results are those of the
API server. No I/O; values are JSON trees.
"""

from __future__ import annotations

from kubewright.cel.celtypes import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    CelType,
    list_of,
    map_of,
    optional_of,
)
from kubewright.cel.environment import Environment, Program
from kubewright.cel.errors import CelError, CompileError, CostExceeded, EvaluationError, Issue
from kubewright.cel.schema_types import type_of_schema
from kubewright.cel.values import NONE, OptionalValue, Timestamp, Uint

__all__ = (
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DURATION",
    "DYN",
    "INT",
    "NONE",
    "NULL",
    "STRING",
    "TIMESTAMP",
    "UINT",
    "CelError",
    "CelType",
    "CompileError",
    "CostExceeded",
    "Environment",
    "EvaluationError",
    "Issue",
    "OptionalValue",
    "Program",
    "Timestamp",
    "Uint",
    "list_of",
    "map_of",
    "optional_of",
    "type_of_schema",
)
