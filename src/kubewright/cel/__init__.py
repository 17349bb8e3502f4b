"""The expression language of CRDs and policies: CEL as Kubernetes 1.35 has it.

    from kubewright.cel import BOOL, Environment, type_of_schema

    environment = Environment({"self": type_of_schema({"type": "object", "properties": {"n": {"type": "integer"}}})})
    environment.compile("self.n > 0", expect=BOOL).evaluate({"self": {"n": 3}})  # True

An expression is parsed (`cel.parsing`), checked (`checker`, `validators`) and compiled to closures (`compiler`). An
evaluation has a cost limit, and its maximum cost can be estimated beforehand (`cel.cost`). Messages, costs and results
are those of the API server. No I/O; values are JSON trees.
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
from kubewright.cel.environment import CALL_BUDGET, Environment, Program
from kubewright.cel.errors import CelError, CompileError, CostExceeded, EvaluationError, Issue
from kubewright.cel.library.authorization import AUTHORIZER, RESOURCE_CHECK, Authorizer, Decision, ResourceCheck
from kubewright.cel.names import escape_field_name
from kubewright.cel.schema_types import REQUEST_BYTES, type_of_schema, with_identity
from kubewright.cel.values import NONE, OptionalValue, Timestamp, Uint

__all__ = (
    "AUTHORIZER",
    "BOOL",
    "BYTES",
    "CALL_BUDGET",
    "DOUBLE",
    "DURATION",
    "DYN",
    "INT",
    "NONE",
    "NULL",
    "REQUEST_BYTES",
    "RESOURCE_CHECK",
    "STRING",
    "TIMESTAMP",
    "UINT",
    "Authorizer",
    "CelError",
    "CelType",
    "CompileError",
    "CostExceeded",
    "Decision",
    "Environment",
    "EvaluationError",
    "Issue",
    "OptionalValue",
    "Program",
    "ResourceCheck",
    "Timestamp",
    "Uint",
    "escape_field_name",
    "list_of",
    "map_of",
    "optional_of",
    "type_of_schema",
    "with_identity",
)
