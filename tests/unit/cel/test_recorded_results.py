"""Expressions, and what the CEL of Kubernetes 1.35 made of them: type, value, message, cost and estimated cost.

`recorded_results.json` was recorded from cel-go with the libraries of the API server, on one schema and one object. A
value is written with its type in front, so that `int 1` and `double 1` differ.

Covers: kubewright.cel
"""

import json
from pathlib import Path
from typing import Any

import pytest

from kubewright.api.times import Duration
from kubewright.cel import (
    CelType,
    CompileError,
    Environment,
    EvaluationError,
    OptionalValue,
    Timestamp,
    Uint,
    type_of_schema,
)
from kubewright.cel.library.standard import number_text

RECORDED = json.loads((Path(__file__).parent / "recorded_results.json").read_text())
TYPE = type_of_schema(RECORDED["schema"], name="selfType1")
assert TYPE is not None
ENVIRONMENT = Environment({"self": TYPE, "oldSelf": TYPE})


def shown(value: Any) -> Any:
    """A value as the recording has it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, list):
        return [shown(each) for each in value]
    if isinstance(value, dict):
        return {"map": sorted(([shown(key), shown(each)] for key, each in value.items()), key=str)}
    if isinstance(value, OptionalValue):
        return ["optional", shown(value.value)] if value.present else ["optional"]
    if isinstance(value, float):
        return f"double {number_text(value)}"
    if isinstance(value, Timestamp):
        return f"ts {Timestamp(value.nanoseconds)}"
    for kind, prefix in ((Uint, "uint "), (int, "int "), (str, "s:"), (Duration, "dur ")):
        if isinstance(value, kind):
            return f"{prefix}{value}"
    if isinstance(value, bytes):
        return f"bytes {value.hex()}"
    return f"type {value.name}" if isinstance(value, CelType) else f"opaque {value.cel_type.name}"


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: case["expression"][:60])
def test_an_expression_has_the_result_of_the_api_server(case: dict[str, Any]) -> None:
    found: dict[str, Any] = {"expression": case["expression"]}
    try:
        program = ENVIRONMENT.compile(case["expression"])
    except CompileError as error:
        found["failure" if error.failure else "issues"] = str(error)
    else:
        found |= {"type": str(program.type), "estimate": program.estimate()}
        try:
            value, found["cost"] = program.evaluate_with_cost({"self": RECORDED["self"]})
            found["value"] = shown(value)
        except EvaluationError as error:
            found["error"] = str(error)

    assert found == case
