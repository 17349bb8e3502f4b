"""Checks of a typed tree beyond types: literals that must parse, and lists and maps of one type.

`duration('x')`, `timestamp('x')` and `matches('[')` with constants are rejected before they run; list and map literals
do not mix types, except in the arguments of `format`, which are checked against the format. As in Kubernetes since
1.29 (cel-go: cel/validator.go). `environment` calls it after the checker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kubewright.cel import regexes
from kubewright.cel.celtypes import CelType
from kubewright.cel.errors import EvaluationError, Issue
from kubewright.cel.library import formatting
from kubewright.cel.library.standard import to_duration, to_timestamp
from kubewright.cel.syntax import Call, ListLiteral, Literal, MapLiteral, Node

__all__ = ("problems",)


def problems(root: Node) -> list[Issue]:
    """The issues of a tree that passed the checker."""
    found: list[Issue] = []
    for node, exempt in _walk(root, exempt=False):
        if isinstance(node, Call):
            found.extend(_literal_problem(node))
            found.extend(_format_problem(node))
        elif isinstance(node, ListLiteral) and not exempt:
            found.extend(_mixed_list(node))
        elif isinstance(node, MapLiteral) and not exempt:
            found.extend(_mixed_map(node))
    return found


def _walk(node: Node, *, exempt: bool) -> Iterator[tuple[Node, bool]]:
    yield node, exempt
    inside = exempt or (isinstance(node, Call) and node.function == "format")
    for child in node.children():
        yield from _walk(child, exempt=inside)


def _literal_problem(node: Call) -> Iterator[Issue]:
    check = _CHECKED.get(node.function)
    if check is None or not node.arguments or not isinstance(node.arguments[0], Literal):
        return
    literal = node.arguments[0]
    try:
        check(literal.value)
    except EvaluationError:
        yield Issue(f"invalid {node.function} argument", literal.at)


def _format_problem(node: Call) -> Iterator[Issue]:
    if node.function != "format" or not isinstance(node.target, Literal) or not isinstance(node.target.value, str):
        return
    values = node.arguments[0]
    if not isinstance(values, ListLiteral):
        return
    problem = formatting.problem(node.target.value, [each.type for each in values.elements])
    if problem is not None:
        message, place = problem
        yield Issue(message, node.at if place is None else values.elements[place].at)


def _unwrap_optional(kind: CelType, *, optional: bool) -> CelType:
    return kind.parameters[0] if optional and kind.parameters else kind


def _mixed_list(node: ListLiteral) -> Iterator[Issue]:
    wanted: CelType | None = None
    for place, each in enumerate(node.elements):
        kind = _unwrap_optional(each.type, optional=place in node.optional)
        if wanted is None:
            wanted = kind
        elif wanted != kind:
            yield Issue(f"expected type '{wanted}' but found '{kind}'", each.at)
            return


def _mixed_map(node: MapLiteral) -> Iterator[Issue]:
    wanted: tuple[CelType, CelType] | None = None
    for key, value, optional in node.entries:
        kinds = key.type, _unwrap_optional(value.type, optional=optional)
        if wanted is None:
            wanted = kinds
            continue
        for each, have, want in zip((key, value), kinds, wanted, strict=True):
            if have != want:
                yield Issue(f"expected type '{want}' but found '{have}'", each.at)


_CHECKED: Final[dict[str, Callable[[Any], object]]] = {
    "duration": to_duration,
    "timestamp": to_timestamp,
    "matches": regexes.compiled,
}
