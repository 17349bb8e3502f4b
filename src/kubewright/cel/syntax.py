"""The nodes of an expression's syntax tree.

The parser makes them, with macros expanded; the checker writes types and overloads into them; the cost estimator and
the compiler read them. A tree belongs to one compilation, so it may be changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kubewright.cel.celtypes import CelType
    from kubewright.cel.declarations import Overload

__all__ = (
    "ACCUMULATOR",
    "Call",
    "Comprehension",
    "Ident",
    "ListLiteral",
    "Literal",
    "MapLiteral",
    "Node",
    "Select",
    "Struct",
)

ACCUMULATOR: Final = "@result"
"""The accumulator variable of comprehensions; no text can name it."""


class Node:
    """An expression, and what the checker found out about it."""

    __slots__ = ("at", "type")

    at: int
    """The character offset of its operator, or of its first character."""
    type: CelType

    def __init__(self, at: int) -> None:
        self.at = at

    def children(self) -> Iterator[Node]:
        """The direct subexpressions."""
        return iter(())

    def copy(self) -> Node:
        """A copy, for macros that use an expression twice."""
        raise NotImplementedError


class Literal(Node):
    """A number, text, bytes, boolean or null."""

    __slots__ = ("kind", "value")

    def __init__(self, at: int, kind: str, value: object) -> None:
        super().__init__(at)
        self.kind = kind
        self.value = value

    def copy(self) -> Literal:
        return Literal(self.at, self.kind, self.value)


class Ident(Node):
    """A variable, or the name of a type."""

    __slots__ = ("name", "named_type")

    named_type: CelType | None
    """The type, if this is the name of one."""

    def __init__(self, at: int, name: str) -> None:
        super().__init__(at)
        self.name = name
        self.named_type = None

    def copy(self) -> Ident:
        return Ident(self.at, self.name)


class Select(Node):
    """`operand.field`, or the test `has(operand.field)`."""

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
    """A function or operator applied to arguments; `target` is the expression before the dot."""

    __slots__ = ("arguments", "function", "overloads", "target")

    overloads: list[Overload]
    """The overloads that are possible for the types."""

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
    """`[a, ?b]`; the elements at the indexes in `optional` are optionals, left out when empty."""

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
    """`Name{field: value}`; Kubernetes declares no type that can be made this way."""

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


class Comprehension(Node):
    """A comprehension: fold `iter_range` into `accumulator` while `condition` is true; then `result`.

    The fields are those of ComprehensionExpr in cel-spec's syntax.proto.
    """

    __slots__ = ("accumulator", "condition", "initial", "iter_range", "result", "second", "step", "variable")

    def __init__(
        self,
        at: int,
        *,
        iter_range: Node,
        variable: str,
        initial: Node,
        condition: Node,
        step: Node,
        result: Node,
        second: str = "",
        accumulator: str = ACCUMULATOR,
    ) -> None:
        super().__init__(at)
        self.iter_range = iter_range
        self.variable = variable
        self.second = second
        self.accumulator = accumulator
        self.initial = initial
        self.condition = condition
        self.step = step
        self.result = result

    def children(self) -> Iterator[Node]:
        return iter((self.iter_range, self.initial, self.condition, self.step, self.result))

    def copy(self) -> Comprehension:
        return Comprehension(
            self.at,
            iter_range=self.iter_range.copy(),
            variable=self.variable,
            second=self.second,
            accumulator=self.accumulator,
            initial=self.initial.copy(),
            condition=self.condition.copy(),
            step=self.step.copy(),
            result=self.result.copy(),
        )

    @property
    def is_bind(self) -> bool:
        """Whether it iterates over nothing and only binds a name."""
        return (
            isinstance(self.iter_range, ListLiteral)
            and not self.iter_range.elements
            and isinstance(self.condition, Literal)
            and self.condition.value is False
            and self.accumulator != ACCUMULATOR
        )
