"""Compiles selections and indexes: `self.spec.ports[0].name`, `has(...)`, `.?field`, `[?index]`.

With a declared type, a field is one lookup in a dict; a null field counts as absent, as on the API server. Otherwise
`operators` decides at run time. JSON is converted only at the leaf, so that nothing else of the object is touched.
`compiler` calls this.
"""

from __future__ import annotations

from typing import Final

from kubewright.cel import operators
from kubewright.cel.celtypes import CelType
from kubewright.cel.code import Code, Frame, Run, boxed, convert
from kubewright.cel.errors import EvaluationError
from kubewright.cel.values import NONE, OptionalValue, from_json

__all__ = ("has", "index", "optional_index", "optional_select", "select")

_MISSING: Final = object()


def _extended(operand: Code) -> tuple[int, str]:
    """Cost and kind of a path one step longer than the operand: one for the step, and one more for the first."""
    if operand.kind in ("path", "choice"):
        return operand.cost + 1, operand.kind
    return operand.cost + 2, "path"


def _leaf(run: Run, cost: int, kind: str, found: CelType) -> Code:
    """A value just found in JSON: scalars are converted now, containers when a function needs the whole value."""
    if not found.needs_conversion:
        return Code(run, cost, kind)
    if found.details is not None and found.details.conversion:

        def read_leaf(frame: Frame) -> object:
            return from_json(run(frame), found)

        return Code(read_leaf, cost, kind)
    return Code(run, cost, kind, found)


def _target(operand: Code, kind: CelType) -> tuple[Code, CelType | None]:
    """The operand, and its type if that describes its JSON."""
    if operand.json is not None:
        return operand, operand.json
    # A type that needs conversion describes the JSON, and no longer the value once it is converted.
    return operand, None if kind.needs_conversion else kind


def select(operand: Code, kind: CelType, name: str) -> Code:
    """`operand.name`."""
    cost, path = _extended(operand)
    operand, known = _target(operand, kind)
    source = operand.run
    if known is not None and known.kind == "object" and known.details is not None and known.details.fields:
        field = known.details.fields[name]
        json = field.json

        def run_field(frame: Frame) -> object:  # hot
            value = source(frame).get(json)
            if value is None:
                raise EvaluationError(f"no such key: {name}")
            return value

        return _leaf(run_field, cost, path, field.type)
    if known is not None and known.kind == "map":

        def run_entry(frame: Frame) -> object:  # hot
            value = source(frame).get(name, _MISSING)
            if value is _MISSING:
                raise EvaluationError(f"no such key: {name}")
            return value

        return _leaf(run_entry, cost, path, known.parameters[1])
    inner = boxed(operand).run

    def run(frame: Frame) -> object:
        return operators.field_of(inner(frame), name)

    return Code(run, cost, path)


def has(operand: Code, kind: CelType, name: str) -> Code:
    """`has(operand.name)`: the test itself costs nothing."""
    cost = operand.cost + (operand.kind not in ("path", "choice"))
    operand, known = _target(operand, kind)
    source = operand.run
    if known is not None and known.kind == "object" and known.details is not None and known.details.fields:
        json = known.details.fields[name].json

        def run_field(frame: Frame) -> bool:  # hot
            return source(frame).get(json) is not None

        return Code(run_field, cost)
    if known is not None and known.kind == "map":

        def run_entry(frame: Frame) -> bool:
            return name in source(frame)

        return Code(run_entry, cost)
    inner = boxed(operand).run

    def run(frame: Frame) -> bool:
        return operators.has_field(inner(frame), name)

    return Code(run, cost)


def optional_select(operand: Code, kind: CelType, name: str) -> Code:
    """`operand.?name`."""
    cost, path = _extended(operand)
    cost -= 1
    operand, known = _target(operand, kind)
    if known is not None and known.kind == "object" and known.details is not None and known.details.fields:
        field = known.details.fields[name]
        json, found, source = field.json, field.type, operand.run

        def run_field(frame: Frame) -> OptionalValue:
            value = source(frame).get(json)
            if value is None:
                return NONE
            frame[0] -= 1
            return OptionalValue(convert(frame, value, found))

        return Code(run_field, cost, path)
    inner = boxed(operand).run

    def run(frame: Frame) -> OptionalValue:
        value = operators.optional_field(inner(frame), name)
        if value.present:
            frame[0] -= 1
        return value

    return Code(run, cost, path)


def _steps(operand: Code, place: Code) -> tuple[int, str]:
    cost, path = _extended(operand)
    # cel-go resolves an attribute used as an index without the cost of its first step.
    return cost + place.cost - (place.kind == "path"), path


def index(operand: Code, kind: CelType, place: Code) -> Code:
    """`operand[place]`."""
    cost, path = _steps(operand, place)
    operand, known = _target(operand, kind)
    at = boxed(place).run
    if known is not None and known.kind == "list":
        source = operand.run

        def run_item(frame: Frame) -> object:
            return operators.at_index(source(frame), at(frame))

        return _leaf(run_item, cost, path, known.parameters[0])
    if known is not None and known.kind == "map":
        source = operand.run

        def run_entry(frame: Frame) -> object:
            return operators.at_index(source(frame), at(frame))

        return _leaf(run_entry, cost, path, known.parameters[1])
    inner = boxed(operand).run

    def run(frame: Frame) -> object:
        return operators.at_index(inner(frame), at(frame))

    return Code(run, cost, path)


def optional_index(operand: Code, place: Code) -> Code:
    """`operand[?place]`."""
    cost, path = _steps(operand, place)
    inner, at = boxed(operand).run, boxed(place).run

    def run(frame: Frame) -> OptionalValue:
        value = operators.optional_index(inner(frame), at(frame))
        if value.present:
            frame[0] -= 1
        return value

    return Code(run, cost - 1, path)
