"""The nodes of an expression's syntax tree.

The parser builds them, macros already expanded; the checker writes types and overloads into them; the cost estimate
and the compiler read them. A tree belongs to one compilation, which is why it may be written into. Nothing here
decides anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kubewright.cel.celtypes import CelType
    from kubewright.cel.declarations import Overload

__all__ = ("ACCUMULATOR", "Call", "Fold", "Ident", "ListLiteral", "Literal", "MapLiteral", "Node", "Select", "Struct")

ACCUMULATOR: Final = "@result"
"""The variable a comprehension folds into; no text can name it."""


class Node:
    """An expression, and what the checker found out about it."""

    __slots__ = ("at", "type")

    at: int
    """The character the expression is known by: its operator, or its first one."""
    type: CelType

    def __init__(self, at: int) -> None:
        self.at = at

    def children(self) -> Iterator[Node]:
        """The expressions directly inside."""
        return iter(())

    def copy(self) -> Node:
        """The same expression once more, for macros that need it twice."""
        raise NotImplementedError


class Literal(Node):
    """A number, text, bytes, truth value or null."""

    __slots__ = ("kind", "value")

    def __init__(self, at: int, kind: str, value: object) -> None:
        super().__init__(at)
        self.kind = kind
        self.value = value

    def copy(self) -> Literal:
        return Literal(self.at, self.kind, self.value)


class Ident(Node):
    """A variable, or the name of a type."""

    __slots__ = ("meant", "name")

    meant: CelType | None
    """The type this names, if it names one."""

    def __init__(self, at: int, name: str) -> None:
        super().__init__(at)
        self.name = name
        self.meant = None

    def copy(self) -> Ident:
        return Ident(self.at, self.name)


class Select(Node):
    """`operand.field`, or the question whether it is there: `has(operand.field)`."""

    __slots__ = ("field", "operand", "test")

    def __init__(self, at: int, operand: Node, field: str, *, test: bool = False) -> None:
        super().__init__(at)
        self.operand = operand
        self.field = field
        self.test = test

    def children(self) -> Iterator[Node]:
        yield self.operand

    def copy(self) -> Select:
        return Select(self.at, self.operand.copy(), self.field, test=self.test)


class Call(Node):
    """A function or an operator applied to arguments; `target` is what stands before the dot."""

    __slots__ = ("arguments", "function", "overloads", "target")

    overloads: list[Overload]
    """Those that fit, as far as the types tell."""

    def __init__(self, at: int, function: str, arguments: list[Node], target: Node | None = None) -> None:
        super().__init__(at)
        self.function = function
        self.arguments = arguments
        self.target = target
        self.overloads = []

    @property
    def operands(self) -> list[Node]:
        """Target and arguments."""
        return self.arguments if self.target is None else [self.target, *self.arguments]

    def children(self) -> Iterator[Node]:
        return iter(self.operands)

    def copy(self) -> Call:
        target = None if self.target is None else self.target.copy()
        return Call(self.at, self.function, [each.copy() for each in self.arguments], target)


class ListLiteral(Node):
    """`[a, ?b]`; the places in `optional` hold optionals that are left out when empty."""

    __slots__ = ("elements", "optional")

    def __init__(self, at: int, elements: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(at)
        self.elements = elements
        self.optional = optional

    def children(self) -> Iterator[Node]:
        return iter(self.elements)

    def copy(self) -> ListLiteral:
        return ListLiteral(self.at, [each.copy() for each in self.elements], self.optional)


class MapLiteral(Node):
    """`{key: value, ?key: optional}`."""

    __slots__ = ("entries",)

    def __init__(self, at: int, entries: list[tuple[Node, Node, bool]]) -> None:
        super().__init__(at)
        self.entries = entries

    def children(self) -> Iterator[Node]:
        for key, value, _ in self.entries:
            yield key
            yield value

    def copy(self) -> MapLiteral:
        return MapLiteral(self.at, [(key.copy(), value.copy(), optional) for key, value, optional in self.entries])


class Struct(Node):
    """`Name{field: value}`; Kubernetes declares no type that may be built so, but people try."""

    __slots__ = ("fields", "name")

    def __init__(self, at: int, name: str, fields: list[tuple[str, Node]]) -> None:
        super().__init__(at)
        self.name = name
        self.fields = fields

    def children(self) -> Iterator[Node]:
        for _, value in self.fields:
            yield value

    def copy(self) -> Struct:
        return Struct(self.at, self.name, [(name, value.copy()) for name, value in self.fields])


class Fold(Node):
    """A comprehension: go over `over`, folding into `accumulator`, while `condition` holds; then `result`."""

    __slots__ = ("accumulator", "condition", "initial", "over", "result", "second", "step", "variable")

    def __init__(
        self,
        at: int,
        *,
        over: Node,
        variable: str,
        initial: Node,
        condition: Node,
        step: Node,
        result: Node,
        second: str = "",
        accumulator: str = ACCUMULATOR,
    ) -> None:
        super().__init__(at)
        self.over = over
        self.variable = variable
        self.second = second
        self.accumulator = accumulator
        self.initial = initial
        self.condition = condition
        self.step = step
        self.result = result

    def children(self) -> Iterator[Node]:
        return iter((self.over, self.initial, self.condition, self.step, self.result))

    def copy(self) -> Fold:
        return Fold(
            self.at,
            over=self.over.copy(),
            variable=self.variable,
            second=self.second,
            accumulator=self.accumulator,
            initial=self.initial.copy(),
            condition=self.condition.copy(),
            step=self.step.copy(),
            result=self.result.copy(),
        )

    @property
    def binds(self) -> bool:
        """Whether this loops over nothing and only gives a value a name."""
        return (
            isinstance(self.over, ListLiteral)
            and not self.over.elements
            and isinstance(self.condition, Literal)
            and self.condition.value is False
            and self.accumulator != ACCUMULATOR
        )
