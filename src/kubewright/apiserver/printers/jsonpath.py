r"""JSONPath for printer columns: `.status.conditions[?(@.type=="Ready")].status`.

    path = parse_path(".spec.ports[*].name")
    found = path.find(tree)

It is the dialect of client-go (k8s.io/client-go/util/jsonpath): a missing field is no result, an index out of bounds
is an error, a dot inside a name is escaped as `\.`, and both sides of a comparison must have the same type.
`InvalidPathError` is raised when a path is parsed, `EvaluationError` when it is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, final

from kubewright.errors import DecodeError

__all__ = ("EvaluationError", "InvalidPathError", "Path", "parse_path")

_END: Final = "\0"
_TERMINATORS: Final = frozenset(" \t\r\n.,[]${}@" + _END)
_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": lt,
    ">": gt,
    "==": eq,
    "!=": ne,
    "<=": le,
    ">=": ge,
}

Values = list[Any]
Step = Callable[[Values], Values]


class InvalidPathError(DecodeError):
    """A path has a syntax error."""


@final
class EvaluationError(Exception):  # `custom` catches it and prints null
    """A path cannot be evaluated on an object; `left` are the results so far."""

    def __init__(self, left: Values) -> None:
        super().__init__("the path cannot be evaluated on the object")
        self.left = left


@final
class Path:
    """A parsed path."""

    __slots__ = ("_blocks", "_fields")

    def __init__(self, blocks: Sequence[Sequence[Step]]) -> None:
        self._blocks = blocks
        steps = blocks[0] if len(blocks) == 1 else ()
        names = [step.name for step in steps if isinstance(step, _Field)]
        self._fields = names if names and len(names) == len(steps) else None

    def find(self, tree: Any) -> Values:
        """The results of the path, in order."""
        if self._fields is not None:  # the fast path: most paths are field names only
            for name in self._fields:
                if not isinstance(tree, dict) or name not in tree:
                    return []
                tree = tree[name]
            return [tree]
        found = [_evaluate(steps, [tree]) for steps in self._blocks]
        return found[0] if found else []


def parse_path(text: str) -> Path:
    """Parse a path of a CRD, which has no braces around it."""
    return Path(_Parser(f"{{{text}}}").blocks())


def _evaluate(steps: Sequence[Step], values: Values) -> Values:
    for step in steps:
        values = step(values)
    return values


# steps


@final
class _Field:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, values: Values) -> Values:
        return [value[self.name] for value in values if isinstance(value, dict) and self.name in value]


def _constant(value: Any) -> Step:
    return lambda values: [value for _ in values]


def _text(value: str) -> Step:
    return lambda _values: [value]


def _members(value: Any) -> Values:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, str):
        return [bytes((one,)) for one in value.encode()]
    return value if isinstance(value, list) else []


def _wildcard(values: Values) -> Values:
    return [inner for value in values for inner in _members(value)]


def _descend(values: Values) -> Values:
    found: Values = []
    for value in values:
        inner = _members(value)
        if inner:
            found.append(value)
            found.extend(_descend(inner))
    return found


def _fail(values: Values) -> Values:
    raise EvaluationError(values)


@final
class _Slice:
    __slots__ = ("_derived", "_end", "_start", "_step")

    def __init__(self, start: int | None, end: int | None, step: int | None, *, derived: bool) -> None:
        self._start, self._end, self._step, self._derived = start or 0, end, step, derived

    def __call__(self, values: Values) -> Values:
        found: Values = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise EvaluationError(values)
            count = len(value)
            start = self._start + count if self._start < 0 else self._start
            end = count if self._end is None else self._end
            if end < 0 or (end == 0 and self._derived):
                end += count
            if start == end:
                return found
            if not 0 <= start < count or not start <= end <= count or (self._step or 1) <= 0:
                raise EvaluationError(values)
            found.extend(value[start : end : self._step or 1])
        return found


@final
class _Union:
    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[Sequence[Step]]) -> None:
        self._parts = parts

    def __call__(self, values: Values) -> Values:
        try:
            return [found for steps in self._parts for found in _evaluate(steps, values)]
        except EvaluationError:
            raise EvaluationError(values) from None


@final
class _Filter:
    __slots__ = ("_left", "_operator", "_right")

    def __init__(self, left: Sequence[Step], operator: str, right: Sequence[Step]) -> None:
        self._left, self._operator, self._right = left, operator, right

    def __call__(self, values: Values) -> Values:
        found: Values = []
        for value in values:
            if not isinstance(value, list):
                raise EvaluationError(values)
            found.extend(item for item in value if self._passes(item, values, found))
        return found

    def _passes(self, item: Any, values: Values, found: Values) -> bool:
        if not self._operator:
            try:
                return bool(_evaluate(self._left, [item]))
            except EvaluationError as failure:
                return bool(failure.left)
        sides = []
        for steps in (self._left, self._right):
            try:
                side = _evaluate(steps, [item])
            except EvaluationError:
                raise EvaluationError(values) from None
            if not side:
                return False
            if len(side) > 1:
                raise EvaluationError(values)
            sides.append(side[0])
        left, right = sides
        return self._compare(left, right, found)

    def _compare(self, left: Any, right: Any, found: Values) -> bool:
        operator = _OPERATORS.get(self._operator)
        if operator is None or type(left) is not type(right) or not isinstance(left, (bool, int, float, str)):
            raise EvaluationError(found)
        if isinstance(left, bool) and operator not in (eq, ne):
            raise EvaluationError(found)
        if isinstance(left, str):  # Go compares strings by bytes
            left, right = left.encode(), right.encode()
        return operator(left, right)


# parsing


@final
class _Parser:
    """Parses a template: text, with actions in braces."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def blocks(self) -> list[list[Step]]:
        found: list[list[Step]] = []
        while self._at < len(self._text):
            opening = self._text.find("{", self._at)
            before = self._text[self._at : opening if opening >= 0 else None]
            if before:
                found.append([_text(before)])
            if opening < 0:
                break
            self._at = opening + 1
            found.append(self._block())
        return found

    def _block(self) -> list[Step]:
        steps: list[Step] = []
        recursive = -1
        while True:
            rest = self._text[self._at : self._at + 3]
            if rest.startswith("}"):
                self._at += 1
                return steps
            if rest.startswith(".."):
                if recursive == len(steps):
                    raise InvalidPathError("invalid multiple recursive descent")
                self._at += 2
                steps.append(_descend)
                recursive = len(steps)
                if _is_word(self._peek()):
                    steps.append(self._field())
            elif rest == "[?(":
                steps.append(self._filter())
            else:
                steps.extend(self._step())

    def _step(self) -> list[Step]:
        char = self._next()
        if char in " @$":
            return []
        if char == "[":
            return self._brackets()
        if char in "\"'":
            return [_text(self._quoted(char))]
        if char == ".":
            return [self._field()]
        self._at -= 1
        if char in "+-" or char.isdigit():
            return [_constant(self._number())]
        if _is_word(char):
            return [self._word()]
        raise InvalidPathError(f"unrecognized character in action: {char!r}")

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else _END

    def _next(self) -> str:
        char = self._peek()
        if char in "\r\n" or char == _END:
            raise InvalidPathError("unclosed action")
        self._at += 1
        return char

    def _until_terminator(self) -> str:
        start = self._at
        while (char := self._peek()) not in _TERMINATORS:
            self._at += 2 if char == "\\" else 1
        return self._text[start : self._at]

    def _field(self) -> Step:
        name = self._until_terminator()
        return _wildcard if name == "*" else _Field(name.replace("\\", ""))

    def _word(self) -> Step:
        word = self._until_terminator()
        return _constant(word == "true") if word in ("true", "false") else _fail

    def _number(self) -> float:
        found = re.compile(r"[+-]?[0-9.]*").match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        try:
            return int(found[0])
        except ValueError:
            pass
        try:
            return float(found[0])
        except ValueError:
            raise InvalidPathError(f"cannot parse number {found[0]}") from None

    def _quoted(self, quote: str) -> str:
        start = self._at
        while True:
            if self._peek() in ("\n", _END):
                raise InvalidPathError("unterminated quoted string")
            self._at += 1
            if self._text[self._at - 1] == quote and self._text[self._at - 2] != "\\":
                break
        return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), self._text[start : self._at - 1])

    def _brackets(self) -> list[Step]:
        end = self._text.find("]", self._at)
        if end < 0 or "\n" in self._text[self._at : end]:
            raise InvalidPathError("unterminated array")
        inner, self._at = self._text[self._at : end], end + 1
        if inner == "*":
            inner = ":"
        if "," in inner:
            return [_Union([_action(f"[{part.strip(' ')}]") for part in inner.split(",")])]
        if key := _KEY.fullmatch(inner):
            return _action(f".{key[1]}")
        return [_slice_of(inner)]

    def _filter(self) -> Step:
        self._at += len("[?(")
        start, quote, closed = self._at, "", False
        while True:
            char = self._peek()
            if char in ("\n", _END):
                raise InvalidPathError("unterminated filter")
            self._at += 1
            if char in "\"'":
                if not quote:
                    quote = char
                elif char == quote and self._text[self._at - 2] != "\\":
                    closed = True
            elif char == ")" and bool(quote) == closed:
                break
        inner = self._text[start : self._at - 1]
        if self._peek() != "]":
            raise InvalidPathError("unclosed array expect ]")
        self._at += 1
        if comparison := _COMPARISON.fullmatch(inner):
            return _Filter(_action(comparison[1]), comparison[2], _action(comparison[3]))
        return _Filter(_action(inner), "", ())


def _action(text: str) -> list[Step]:
    return _Parser(f"{{{text}}}").blocks()[0]


def _slice_of(text: str) -> Step:
    found = _SLICE.fullmatch(text)
    if found is None:
        raise InvalidPathError(f"invalid array index {text}")
    start, end, step = found.groups()
    if start == "-" or ":-" in (end, step):
        raise InvalidPathError(f"array index {text} is not a number")
    first = int(start) if start else None
    if end is None:
        return _Slice(first, (first or 0) + 1, None, derived=True)
    last, by = (int(part[1:]) if part and part != ":" else None for part in (end, step))
    return _Slice(first, last, by, derived=False)


def _is_word(char: str) -> bool:
    return char == "_" or char.isalpha() or char.isdigit()
