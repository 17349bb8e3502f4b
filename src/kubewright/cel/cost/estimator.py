"""The estimated maximum cost of an expression, for any value its schema allows.

The API server rejects rules that could get too expensive, so this follows cel-go (checker/cost.go) and the estimator of
apiextensions-apiserver, quirks included: sizes come from the bounds in the schema (`maxLength`, `maxItems`,
`maxProperties`) along the path of a value and, where no path is known, from the expression itself.
`cost.call_estimates` has the cost of single calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from kubewright.cel.celtypes import CelType
from kubewright.cel.cost import call_estimates as call_estimates
from kubewright.cel.cost.call_estimates import Operand
from kubewright.cel.cost.sizes import MAX_UINT64, UNKNOWN, ZERO, Range, exactly
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
    Struct,
)

__all__ = ("max_cost",)

Path = tuple[str, ...]

_SCALARS: Final = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))
_LIST: Final = exactly(10)
_MAP: Final = exactly(30)
_ONE: Final = exactly(1)


def max_cost(node: Node, declared: Mapping[str, CelType]) -> int:
    """The maximum cost."""
    return _Estimator(declared).cost(node).high


@final
@dataclass(frozen=True, slots=True)
class _Entries:
    """The sizes of the keys and values of a list or map."""

    kind: str
    key: Range
    value: Range


@final
@dataclass(frozen=True, slots=True)
class _Local:
    """A variable of a comprehension."""

    path: Path
    size: Range | None
    entries: _Entries | None


def _either(one: _Entries | None, other: _Entries | None) -> _Entries | None:
    if one is None or other is None:
        return None
    return _Entries(one.kind, one.key.union(other.key), one.value.union(other.value))


@final
class _Estimator:
    """One estimate; remembers paths, sizes and entries by node."""

    def __init__(self, declared: Mapping[str, CelType]) -> None:
        self._declared = declared
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, _Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Range:
        if isinstance(node, Literal):
            return ZERO
        if isinstance(node, Ident):
            return self._ident(node)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListLiteral):
            return self._list(node)
        if isinstance(node, MapLiteral):
            return self._map(node)
        if isinstance(node, Comprehension):
            return self._bind(node) if node.is_bind else self._comprehension(node)
        assert isinstance(node, Struct)
        return ZERO

    def _ident(self, node: Ident) -> Range:
        local = self._local(node.name)
        self._paths[id(node)] = (node.name,) if local is None else local.path
        return _ONE

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _path(self, node: Node) -> Path:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self._paths.get(id(node), ())

    def _select(self, node: Select) -> Range:
        if isinstance(node.operand, Ident) and node.operand.named_type is not None and not node.field:
            self._paths[id(node)] = (node.operand.name,)
            return _ONE
        total = self.cost(node.operand)
        if node.test:
            return total
        if node.operand.type.kind in ("map", "object", "param"):
            total = total.plus(_ONE)
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return total

    def _list(self, node: ListLiteral) -> Range:
        total = _LIST
        size = ZERO if not node.elements else Range(MAX_UINT64, 0)
        for each in node.elements:
            total = total.plus(self.cost(each))
            size = size.union(self._size_or_unknown(each))
        self._entries[id(node)] = _Entries("list", _ONE, size)
        return total

    def _map(self, node: MapLiteral) -> Range:
        total = _MAP
        keys = values = ZERO if not node.entries else Range(MAX_UINT64, 0)
        for key, value, _ in node.entries:
            total = total.plus(self.cost(key)).plus(self.cost(value))
            keys = keys.union(self._size_or_unknown(key))
            values = values.union(self._size_or_unknown(value))
        self._entries[id(node)] = _Entries("map", keys, values)
        return total

    def _push(self, name: str, path: Path, size: Range | None, entries: _Entries | None = None) -> None:
        self._locals.setdefault(name, []).append(_Local(path, size, entries))

    def _bind(self, node: Comprehension) -> Range:
        total = self.cost(node.iter_range).plus(self.cost(node.initial))
        self._push(node.accumulator, self._path(node.initial), self._size(node.initial), self._entries_of(node.initial))
        total = total.plus(self.cost(node.result))
        self._remember(node, self._size(node.result), self._entries_of(node.result))
        self._locals[node.accumulator].pop()
        return total

    def _remember(self, node: Node, size: Range | None, entries: _Entries | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size
        if entries is not None:
            self._entries[id(node)] = entries

    def _comprehension(self, node: Comprehension) -> Range:
        total = self.cost(node.iter_range).plus(self.cost(node.initial))
        self._push(node.accumulator, self._path(node.initial), self._size(node.initial), self._entries_of(node.initial))
        self._push_variables(node)
        iteration = self.cost(node.condition)
        iteration = iteration.plus(self.cost(node.step))
        self._locals[node.variable].pop()
        if node.second:
            self._locals[node.second].pop()
        total = total.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        count = self._size_or_unknown(node.iter_range)
        total = total.plus(count.times(iteration))
        if isinstance(node.initial, Literal):
            self._remember(node, self._size(node.initial), None)
        else:
            self._remember(node, count, self._entries_of(node.step))
        return total

    def _push_variables(self, node: Comprehension) -> None:
        entries = self._entries_of(node.iter_range)
        path = self._path(node.iter_range)
        listed = (node.iter_range.type.kind if entries is None else entries.kind) == "list"
        key = None if entries is None else entries.key
        value = None if entries is None else entries.value
        if node.second:
            self._push(node.variable, (*path, "@indices" if listed else "@keys"), key)
            self._push(node.second, (*path, "@items" if listed else "@values"), value)
        elif listed:
            self._push(node.variable, (*path, "@items"), value)
        else:
            self._push(node.variable, (*path, "@keys"), key)

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            inner = node.arguments[0]
            total = self.cost(inner).plus(_ONE)
            self._remember(node, self._size(inner), self._entries_of(inner))
            return total
        costs = []
        operands = []
        for each in node.arguments:
            costs.append(self.cost(each))
            operands.append(self._operand(each))
        before = ZERO
        target = None
        if node.target is not None:
            before = self.cost(node.target)
            target = self._operand(node.target)
        call_total = Range(MAX_UINT64, 0)
        size: Range | None = None
        for identity in [each.id for each in node.overloads] or ["select_optional_field"]:
            each_cost, each_size = self._call_estimate(node, identity, target, operands, costs)
            call_total = call_total.union(each_cost)
            if each_size is not None:
                size = each_size if size is None else size.union(each_size)
            if identity in ("index_list", "index_map"):
                entries = self._entries_of(node.arguments[0])
                size = None if entries is None else entries.value
                step = "@items" if identity == "index_list" else "@values"
                self._paths[id(node)] = (*self._path(node.arguments[0]), step)
            if size is None:
                size = self._size(node)
        self._remember(node, size, None)
        return before.plus(call_total)

    def _call_estimate(
        self, node: Call, identity: str, target: Operand | None, operands: list[Operand], costs: list[Range]
    ) -> tuple[Range, Range | None]:
        arguments_cost = ZERO
        for each in costs:
            arguments_cost = arguments_cost.plus(each)
        if identity in ("logical_and", "logical_or"):
            return Range(costs[0].low, arguments_cost.high), None
        if identity == "conditional":
            first, second = node.arguments[1:]
            self._remember(node, None, _either(self._entries_of(first), self._entries_of(second)))
            size = self._size_or_unknown(first).union(self._size_or_unknown(second))
            return costs[0].plus(costs[1].union(costs[2])), size
        if identity in ("add_string", "add_bytes", "add_list"):
            one, other = node.arguments
            self._remember(node, None, _either(self._entries_of(one), self._entries_of(other)))
        call_cost, size_found = call_estimates.estimate_call(node.function, identity, target, operands)
        return call_cost.plus(arguments_cost), size_found

    def _operand(self, node: Node) -> Operand:
        path = self._path(node)
        if path and path[0] in (ACCUMULATOR, "__result__"):
            path = ()
        literal = node if isinstance(node, Literal) else None
        return Operand(node.type, self._size(node), path, literal, self._bound)

    def _size_or_unknown(self, node: Node) -> Range:
        size = self._size(node)
        return UNKNOWN if size is None else size

    def _size(self, node: Node) -> Range | None:
        known = self._sizes.get(id(node)) or _literal_size(node)
        if known is not None:
            return known
        bound = self._bound(self._path(node))
        if bound is not None:
            self._sizes[id(node)] = bound
            return bound
        if _is_scalar(node.type):
            return _ONE
        local = self._local(node.name) if isinstance(node, Ident) else None
        return None if local is None else local.size

    def _entries_of(self, node: Node) -> _Entries | None:
        known = self._entries.get(id(node))
        if known is not None:
            return known
        local = self._local(node.name) if isinstance(node, Ident) else None
        return None if local is None else local.entries

    def _bound(self, path: Path) -> Range | None:
        """The maximum size in the schema of the value at a path."""
        if not path:
            return None
        # The API server starts at `self`, whatever the path begins with (apiextensions-apiserver:
        # pkg/apiserver/schema/cel/compilation.go, sizeEstimator).
        kind = self._declared.get("self") or self._declared.get(path[0])
        for step in path[1:]:
            kind = None if kind is None else _inside(kind, step)
        if kind is None:
            return None
        return Range(0, kind.details.max_size if kind.details else 0)


def _inside(kind: CelType, step: str) -> CelType | None:
    if step in ("@items", "@values"):
        return kind.parameters[-1] if kind.kind in ("list", "map") else None
    if step == "@keys":
        return kind.parameters[0] if kind.kind == "map" else None
    if kind.kind == "map" and kind.parameters[1].kind == "dyn" and kind.parameters[1].details is not None:
        # The attributes of a device are of any type, but of known size (k8s.io/dynamic-resource-allocation/cel).
        return kind.parameters[1]
    fields = kind.details.fields if kind.details else None
    return fields[step].type if fields and step in fields else None


def _literal_size(node: Node) -> Range | None:
    if isinstance(node, Literal):
        return exactly(len(node.value) if isinstance(node.value, str | bytes) else 1)
    if isinstance(node, ListLiteral):
        return exactly(len(node.elements))
    if isinstance(node, MapLiteral):
        return exactly(len(node.entries))
    return None


def _is_scalar(kind: CelType) -> bool:
    if kind.name == "optional_type" and kind.parameters:
        return _is_scalar(kind.parameters[0])
    return kind.kind in _SCALARS
