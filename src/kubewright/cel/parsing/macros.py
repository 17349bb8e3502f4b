"""Macros: calls that expand to another expression at parse time.

`has(a.b)` tests whether a field is set; `list.all(x, ...)` and its variants are comprehensions; `optional.optMap(x,
...)` and `cel.bind(x, ...)` bind a name. The parser calls `expand` for every call and uses the result instead. The
expansions are those of cel-go (parser/macro.go) node by node, because type errors and costs follow from them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubewright.cel.errors import Issue
from kubewright.cel.syntax import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)

__all__ = ("COPIERS", "MacroError", "expand")

_Expander = Callable[[int, Node, list[Node]], Node]
_RESERVED: Final = ("__result__", ACCUMULATOR)
_UNUSED: Final = "#unused"
COPIERS: Final = frozenset(("optMap", "optFlatMap"))
"""Macros that repeat the expression before the dot."""


class MacroError(Exception):
    """A macro has invalid arguments."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.issue = Issue(message, at)


def expand(at: int, function: str, target: Node | None, arguments: list[Node], *, bind: bool) -> Node | None:
    """The expansion of a call, or None if it is no macro."""
    if target is None:
        return _has(at, arguments[0]) if function == "has" and len(arguments) == 1 else None
    if bind and function == "bind" and len(arguments) == 3 and isinstance(target, Ident) and target.name == "cel":
        return _bind_name(at, arguments[0], arguments[1], arguments[2], "cel.bind() variable names must be simple")
    expander = _MACROS.get((function, len(arguments)))
    return None if expander is None else expander(at, target, arguments)


def _has(at: int, argument: Node) -> Node:
    if not isinstance(argument, Select) or argument.test:
        raise MacroError("invalid argument to has() macro", argument.at)
    return Select(at, argument.operand, argument.field, test=True)


def _variable(argument: Node, message: str) -> str:
    if not isinstance(argument, Ident):
        raise MacroError(message, argument.at)
    if argument.name in _RESERVED:
        raise MacroError("iteration variable overwrites accumulator variable", argument.at)
    return argument.name


def _variables(arguments: list[Node], count: int, message: str) -> tuple[str, str]:
    if count == 1:
        return _variable(arguments[0], message), ""
    for argument in arguments[:2]:
        if not isinstance(argument, Ident):
            raise MacroError("argument must be a simple name", argument.at)
    first, second = arguments[:2]
    assert isinstance(first, Ident)
    assert isinstance(second, Ident)
    if first.name == second.name:
        raise MacroError(f"duplicate variable name: {first.name}", second.at)
    return _variable(first, message), _variable(second, message)


def _quantifier(count: int, *, every: bool) -> _Expander:
    def expand_quantifier(at: int, target: Node, arguments: list[Node]) -> Node:
        first, second = _variables(arguments, count, "argument must be a simple name")
        running: Node = Ident(at, ACCUMULATOR)
        if not every:
            running = Call(at, "!_", [running])
        return Comprehension(
            at,
            iter_range=target,
            variable=first,
            second=second,
            initial=Literal(at, "bool", every),
            condition=Call(at, "@not_strictly_false", [running]),
            step=Call(at, "_&&_" if every else "_||_", [Ident(at, ACCUMULATOR), arguments[count]]),
            result=Ident(at, ACCUMULATOR),
        )

    return expand_quantifier


def _exists_one(count: int) -> _Expander:
    def expand_exists_one(at: int, target: Node, arguments: list[Node]) -> Node:
        first, second = _variables(arguments, count, "argument must be a simple name")
        one_more = Call(at, "_+_", [Ident(at, ACCUMULATOR), Literal(at, "int", 1)])
        return Comprehension(
            at,
            iter_range=target,
            variable=first,
            second=second,
            initial=Literal(at, "int", 0),
            condition=Literal(at, "bool", True),
            step=Call(at, "_?_:_", [arguments[count], one_more, Ident(at, ACCUMULATOR)]),
            result=Call(at, "_==_", [Ident(at, ACCUMULATOR), Literal(at, "int", 1)]),
        )

    return expand_exists_one


def _collect(at: int, target: Node, names: tuple[str, str], initial: Node, grow: Node, keep: Node | None) -> Node:
    if keep is not None:
        grow = Call(at, "_?_:_", [keep, grow, Ident(at, ACCUMULATOR)])
    return Comprehension(
        at,
        iter_range=target,
        variable=names[0],
        second=names[1],
        initial=initial,
        condition=Literal(at, "bool", True),
        step=grow,
        result=Ident(at, ACCUMULATOR),
    )


def _map(count: int, message: str) -> _Expander:
    def expand_map(at: int, target: Node, arguments: list[Node]) -> Node:
        names = _variables(arguments, count, message)
        keep = arguments[count] if len(arguments) == count + 2 else None
        grow = Call(at, "_+_", [Ident(at, ACCUMULATOR), ListLiteral(at, [arguments[-1]])])
        return _collect(at, target, names, ListLiteral(at, []), grow, keep)

    return expand_map


def _filter(at: int, target: Node, arguments: list[Node]) -> Node:
    name = _variable(arguments[0], "argument is not an identifier")
    grow = Call(at, "_+_", [Ident(at, ACCUMULATOR), ListLiteral(at, [arguments[0]])])
    return _collect(at, target, (name, ""), ListLiteral(at, []), grow, arguments[1])


def _transform_map(*, entries: bool) -> _Expander:
    def expand_transform_map(at: int, target: Node, arguments: list[Node]) -> Node:
        names = _variables(arguments, 2, "argument must be a simple name")
        keep = arguments[2] if len(arguments) == 4 else None
        key: list[Node] = [] if entries else [Ident(at, names[0])]
        grow = Call(at, "cel.@mapInsert", [Ident(at, ACCUMULATOR), *key, arguments[-1]])
        return _collect(at, target, names, MapLiteral(at, []), grow, keep)

    return expand_transform_map


def _bind_name(at: int, variable: Node, value: Node, within: Node, message: str) -> Node:
    if not isinstance(variable, Ident):
        raise MacroError(message, variable.at)
    return Comprehension(
        at,
        iter_range=ListLiteral(at, []),
        variable=_UNUSED,
        accumulator=variable.name,
        initial=value,
        condition=Literal(at, "bool", False),
        step=Ident(at, variable.name),
        result=within,
    )


def _if_present(*, flat: bool) -> _Expander:
    name = "optFlatMap" if flat else "optMap"

    def expand_if_present(at: int, target: Node, arguments: list[Node]) -> Node:
        value = Call(at, "value", [], target.copy())
        message = f"{name}() variable name must be a simple identifier"
        inside = _bind_name(at, arguments[0], value, arguments[1], message)
        if not flat:
            inside = Call(at, "optional.of", [inside])
        present = Call(at, "hasValue", [], target)
        return Call(at, "_?_:_", [present, inside, Call(at, "optional.none", [])])

    return expand_if_present


def _sort_by(at: int, target: Node, arguments: list[Node]) -> Node:
    if isinstance(target, Literal | MapLiteral):
        kinds = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(kinds, target.at)
    given = "@__sortBy_input__"
    keys = _map(1, "argument is not an identifier")(at, Ident(at, given), arguments)
    ordered = Call(at, "@sortByAssociatedKeys", [keys], Ident(at, given))
    return _bind_name(at, Ident(at, given), target, ordered, "")


_MACROS: Final[dict[tuple[str, int], _Expander]] = {
    ("all", 2): _quantifier(1, every=True),
    ("all", 3): _quantifier(2, every=True),
    ("exists", 2): _quantifier(1, every=False),
    ("exists", 3): _quantifier(2, every=False),
    ("exists_one", 2): _exists_one(1),
    ("existsOne", 2): _exists_one(1),
    ("exists_one", 3): _exists_one(2),
    ("existsOne", 3): _exists_one(2),
    ("map", 2): _map(1, "argument is not an identifier"),
    ("map", 3): _map(1, "argument is not an identifier"),
    ("filter", 2): _filter,
    ("transformList", 3): _map(2, "argument must be a simple name"),
    ("transformList", 4): _map(2, "argument must be a simple name"),
    ("transformMap", 3): _transform_map(entries=False),
    ("transformMap", 4): _transform_map(entries=False),
    ("transformMapEntry", 3): _transform_map(entries=True),
    ("transformMapEntry", 4): _transform_map(entries=True),
    ("optMap", 2): _if_present(flat=False),
    ("optFlatMap", 2): _if_present(flat=True),
    ("sortBy", 2): _sort_by,
}
