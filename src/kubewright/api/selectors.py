"""Label and field selectors: which objects a list, a watch or a controller selects.

A label selector has two forms: the text of a URL (`app=web,tier in (front,back),!legacy`) and the structure inside
objects (`matchLabels`, `matchExpressions`). `Selector` parses, prints and matches both, with the API server's grammar
and messages (apimachinery: pkg/labels/selector.go). `FieldSelector` does so for `metadata.name=web` (pkg/fields). Both
are immutable. The client prints them; the cache and the embedded API server match with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, final, get_args

from msgspec import Struct

from kubewright.api.names import label_value_errors, qualified_name_errors
from kubewright.errors import DecodeError

__all__ = (
    "FieldSelector",
    "FieldTerm",
    "Operator",
    "Requirement",
    "Selector",
    "StructuredExpression",
    "StructuredSelector",
)

Operator = Literal["in", "notin", "=", "==", "!=", "gt", "lt", "exists", "!"]
"""`exists` is a key alone, `!` a key that must be absent; `gt` and `lt` are written `>` and `<`."""

_SIGNS: Final = {"=": "=", "==": "==", "!=": "!=", "gt": ">", "lt": "<"}
_BINARY: Final = "in, notin, =, ==, !=, gt, lt"
_TO_STRUCTURED: Final = {"in": "In", "notin": "NotIn", "!=": "NotIn", "exists": "Exists", "!": "DoesNotExist"}
_FROM_STRUCTURED: Final[dict[str, Operator]] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")


class StructuredExpression(Protocol):
    """One entry of `matchExpressions`, as the classes of built-in kinds have it."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> Sequence[str] | None: ...


class StructuredSelector(Protocol):
    """A LabelSelector inside an object, as the classes of built-in kinds have it."""

    @property
    def match_labels(self) -> Mapping[str, str] | None: ...
    @property
    def match_expressions(self) -> Sequence[StructuredExpression] | None: ...


class Requirement(Struct, frozen=True, gc=False):
    """One requirement on one label. Making one checks key and values by the rules for labels."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        errors = [*_key_errors(self.key, path="key"), *_count_errors(self.operator, self.values)]
        for index, value in enumerate(self.values):
            wrong = label_value_errors(value)
            if wrong:
                errors.append(_invalid(f"values[{index}][{self.key}]", value, "; ".join(wrong)))
        if errors:
            raise DecodeError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels meets the requirement."""
        value = labels.get(self.key)
        operator = self.operator
        if operator == "exists":
            return value is not None
        if operator in ("!", "notin", "!="):
            return value is None or (operator != "!" and value not in self.values)
        if operator in ("gt", "lt"):
            number = None if value is None else _integer(value)
            limit = int(self.values[0])
            return number is not None and (number > limit if operator == "gt" else number < limit)
        return value in self.values

    def __str__(self) -> str:
        if self.operator == "exists":
            return self.key
        if self.operator == "!":
            return f"!{self.key}"
        if self.operator in ("in", "notin"):
            return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
        return f"{self.key}{_SIGNS[self.operator]}{self.values[0]}"


@final
class Selector:
    """A label selector: every requirement must be met. Without any it selects everything."""

    __slots__ = ("_equal", "_nothing", "_other", "_requirements")

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        ordered = tuple(sorted(requirements, key=_key_of))
        self._requirements = ordered
        self._nothing = False
        # Most requirements are equalities, which take one lookup each.
        self._equal = tuple((r.key, r.values[0]) for r in ordered if r.operator in ("=", "=="))
        self._other = tuple(r for r in ordered if r.operator not in ("=", "=="))

    @classmethod
    def everything(cls) -> Selector:
        """Selects every object."""
        return cls()

    @classmethod
    def nothing(cls) -> Selector:
        """Selects no object, as a missing structured selector does."""
        made = cls()
        made._nothing = True
        return made

    @classmethod
    def parse(cls, text: str) -> Selector:
        """From the form used in URLs and on command lines."""
        return cls(_LabelParser(text).requirements())

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Selector:
        """Selects what has all these labels."""
        return cls(Requirement(key, "=", (value,)) for key, value in labels.items())

    @classmethod
    def from_structured(cls, selector: Mapping[str, Any] | StructuredSelector | None) -> Selector:
        """From the form inside objects: a typed LabelSelector or its JSON. None selects nothing, empty all."""
        if selector is None:
            return cls.nothing()
        if isinstance(selector, Mapping):
            labels = selector.get("matchLabels") or {}
            expressions = [
                (item.get("key", ""), item.get("operator", ""), item.get("values"))
                for item in selector.get("matchExpressions") or ()
            ]
        else:
            labels = selector.match_labels or {}
            expressions = [(item.key, item.operator, item.values) for item in selector.match_expressions or ()]
        requirements = [Requirement(key, "=", (value,)) for key, value in labels.items()]
        for key, name, values in expressions:
            operator = _FROM_STRUCTURED.get(name)
            if operator is None:
                raise DecodeError(f"{_quote(name)} is not a valid label selector operator")
            requirements.append(Requirement(key, operator, tuple(values or ())))
        return cls(requirements)

    def to_structured(self) -> dict[str, Any]:
        """The form inside objects, as JSON."""
        if self._nothing:
            raise ValueError("a selector of nothing has no structured form; leave the field out instead")
        labels: dict[str, str] = {}
        expressions: list[dict[str, Any]] = []
        for requirement in self._requirements:
            key, operator, values = requirement.key, requirement.operator, requirement.values
            if operator in ("gt", "lt"):
                raise ValueError(f"{str(requirement)!r} has no structured form; compare with In or NotIn instead")
            if operator in ("=", "==") and key not in labels:
                labels[key] = values[0]
                continue
            expression: dict[str, Any] = {"key": key, "operator": _TO_STRUCTURED.get(operator, "In")}
            if values:
                expression["values"] = list(values)
            expressions.append(expression)
        structured: dict[str, Any] = {}
        if labels:
            structured["matchLabels"] = labels
        if expressions:
            structured["matchExpressions"] = expressions
        return structured

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """Sorted by key."""
        return self._requirements

    @property
    def selects_everything(self) -> bool:
        """Whether there are no requirements."""
        return not self._requirements and not self._nothing

    @property
    def selects_nothing(self) -> bool:
        """Whether it was made to select nothing. A contradiction such as `a,!a` is not recognised."""
        return self._nothing

    def matches(self, labels: Mapping[str, str] | None) -> bool:  # hot
        """Whether an object with these labels is selected."""
        if self._nothing:
            return False
        if labels is None:
            labels = {}
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        for requirement in self._other:  # noqa: SIM110  # a generator costs more than the loop
            if not requirement.matches(labels):
                return False
        return True

    def required_value(self, key: str) -> str | None:
        """The only value this label can have in a selected object, if there is just one."""
        for requirement in self._requirements:
            if requirement.key == key and requirement.operator in ("=", "==", "in"):
                return requirement.values[0] if len(requirement.values) == 1 else None
        return None

    def __and__(self, other: Selector) -> Selector:
        if self._nothing or other._nothing:
            return Selector.nothing()
        return Selector((*self._requirements, *other._requirements))

    def __str__(self) -> str:
        # An empty text would select everything. Every server rejects this one.
        return "<nothing>" if self._nothing else ",".join(map(str, self._requirements))

    def __repr__(self) -> str:
        return "Selector.nothing()" if self._nothing else f"Selector.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return (self._nothing, self._requirements) == (other._nothing, other._requirements)

    def __hash__(self) -> int:
        return hash((self._nothing, self._requirements))


def _key_of(requirement: Requirement) -> str:
    return requirement.key


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _invalid(path: str, value: str, message: str) -> str:
    return f"{path}: Invalid value: {_quote(value)}: {message}"


def _key_errors(key: str, *, path: str) -> list[str]:
    errors = qualified_name_errors(key)
    return [_invalid(path, key, "; ".join(errors))] if errors else []


def _count_errors(operator: str, values: tuple[str, ...]) -> list[str]:
    message = ""
    if operator in ("in", "notin"):
        message = "" if values else "for 'in', 'notin' operators, values set can't be empty"
    elif operator in ("=", "==", "!="):
        message = "" if len(values) == 1 else "exact-match compatibility requires one single value"
    elif operator in ("exists", "!"):
        message = "values set must be empty for exists and does not exist" if values else ""
    elif operator in ("gt", "lt"):
        if len(values) != 1:
            message = "for 'Gt', 'Lt' operators, exactly one value is required"
        elif _integer(values[0]) is None:
            rule = "for 'Gt', 'Lt' operators, the value must be an integer"
            return [_invalid("values[0]", values[0], rule)]
    else:
        supported = ", ".join(_quote(name) for name in get_args(Operator))
        return [f"operator: Unsupported value: {_quote(operator)}: supported values: {supported}"]
    return [f"values: Invalid value: {json.dumps(values)}: {message}"] if message else []


def _integer(text: str) -> int | None:
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


_BLANK: Final = " \t\r\n"
_TOKEN: Final = re.compile(rf"[{_BLANK}]*(?:(==|!=|[=!(),<>])|([^=!(),<>{_BLANK}]+)|$)")
_WORDS: Final = ("in", "notin")
_OPERATORS: Final[dict[str, Operator]] = {
    "in": "in",
    "notin": "notin",
    "=": "=",
    "==": "==",
    "!=": "!=",
    ">": "gt",
    "<": "lt",
}
_IDENTIFIER: Final = "identifier"
_END: Final = ""


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of kind and literal. The kind of a symbol or an operator word is itself."""
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        assert match is not None  # a character is blank, a symbol or part of a word
        symbol, word = match.groups()
        if symbol is None and word is None:
            yield (_END, "")
            return
        if symbol is not None:
            yield (symbol, symbol)
        else:
            yield (word if word in _WORDS else _IDENTIFIER, word)
        position = match.end()


class _LabelParser:
    """Recursive descent, one method for each rule of the grammar. Messages are the API server's."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = next(self._tokens)

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            kind, literal = self._peek()
            if kind == _END:
                return found
            if kind not in (_IDENTIFIER, "!"):
                raise DecodeError(f"found '{literal}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except DecodeError as exc:
                raise DecodeError(f"unable to parse requirement: {exc}") from None
            kind, literal = self._take()
            if kind == _END:
                return found
            if kind != ",":
                raise DecodeError(f"found '{literal}', expected: ',' or 'end of string'")
            kind, literal = self._peek()
            if kind not in (_IDENTIFIER, "!"):
                raise DecodeError(f"found '{literal}', expected: identifier after ','")

    def _peek(self) -> tuple[str, str]:
        """The next token, where `in` and `notin` are plain words."""
        kind, literal = self._next
        return (_IDENTIFIER if kind in _WORDS else kind), literal

    def _take(self) -> tuple[str, str]:
        token = self._peek()
        self._advance()
        return token

    def _advance(self) -> None:
        self._next = next(self._tokens, (_END, ""))

    def _requirement(self) -> Requirement:
        kind, key = self._take()
        negated = kind == "!"
        if negated:
            kind, key = self._take()
        if kind != _IDENTIFIER:
            raise DecodeError(f"found '{key}', expected: identifier")
        errors = _key_errors(key, path="<nil>")
        if errors:
            raise DecodeError(errors[0])
        if negated:
            return Requirement(key, "!")
        if self._peek()[0] in (_END, ","):
            return Requirement(key, "exists")
        operator = self._operator()
        values = self._value_set() if operator in _WORDS else {self._exact_value()}
        return Requirement(key, operator, tuple(sorted(values)))

    def _operator(self) -> Operator:
        kind, literal = self._next
        self._advance()
        operator = _OPERATORS.get(kind)
        if operator is None:
            raise DecodeError(f"found '{literal}', expected: {_BINARY}")
        return operator

    def _exact_value(self) -> str:
        if self._peek()[0] in (_END, ","):
            return ""
        kind, literal = self._take()
        if kind != _IDENTIFIER:
            raise DecodeError(f"found '{literal}', expected: identifier")
        return literal

    def _value_set(self) -> set[str]:
        kind, literal = self._take()
        if kind != "(":
            raise DecodeError(f"found '{literal}' expected: '('")
        kind, literal = self._peek()
        if kind not in (_IDENTIFIER, ",", ")"):
            raise DecodeError(f"found '{literal}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            values.add(self._member())
            kind, literal = self._take()
            if kind == ")":
                return values
            if kind != ",":
                raise DecodeError(f"found '{literal}', expected: ',' or ')'")

    def _member(self) -> str:
        """One value of a set; nothing between two commas is the empty value."""
        kind, literal = self._peek()
        if kind in (",", ")"):
            return ""
        if kind != _IDENTIFIER:
            raise DecodeError(f"found '{literal}', expected: ',', or identifier")
        self._advance()
        return literal


class FieldTerm(Struct, frozen=True, gc=False):
    """One condition on one field."""

    field: str
    operator: Literal["=", "!="]
    value: str

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{_SPECIAL.sub(_escape, self.value)}"


Lookup = Mapping[str, str] | Callable[[str], str | None]


@final
class FieldSelector:
    """A field selector: every term must match. A field an object does not have counts as empty."""

    __slots__ = ("_terms",)

    def __init__(self, terms: Iterable[FieldTerm] = ()) -> None:
        self._terms = tuple(terms)

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        """From the form used in URLs; `\\,` `\\=` and `\\\\` stand for the character itself in a value."""
        terms = [_field_term(part, text) for part in sorted(_TERM.findall(text))]
        return cls(term for term in terms if term.field or term.value)  # the server ignores a bare "="

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> FieldSelector:
        """Selects what has all these values."""
        return cls(FieldTerm(field, "=", value) for field, value in fields.items())

    @property
    def terms(self) -> tuple[FieldTerm, ...]:
        """All conditions."""
        return self._terms

    @property
    def selects_everything(self) -> bool:
        """Whether there is no condition."""
        return not self._terms

    def matches(self, fields: Lookup) -> bool:  # hot
        """Whether an object is selected; `fields` maps a field's path to its value, or is asked for it."""
        get = fields.get if isinstance(fields, Mapping) else fields
        for term in self._terms:  # noqa: SIM110  # a generator costs more than the loop
            if ((get(term.field) or "") == term.value) != (term.operator == "="):
                return False
        return True

    def required_value(self, field: str) -> str | None:
        """The value this field must have in a selected object, if the selector says so."""
        for term in self._terms:
            if term.field == field and term.operator == "=":
                return term.value
        return None

    def __and__(self, other: FieldSelector) -> FieldSelector:
        return FieldSelector((*self._terms, *other._terms))

    def __str__(self) -> str:
        return ",".join(map(str, self._terms))

    def __repr__(self) -> str:
        return f"FieldSelector.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self._terms == other._terms if isinstance(other, FieldSelector) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._terms)


_TERM: Final = re.compile(r"(?:\\.|[^,\\]|\\$)+", re.DOTALL)
_OPERATOR: Final = re.compile(r"!=|==|=")
_SPECIAL: Final = re.compile(r"[\\,=]")
_ESCAPE: Final = re.compile(r"\\(.?)|[,=]", re.DOTALL)


def _escape(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


def _unescape(match: re.Match[str]) -> str:
    if match[1] is None:
        raise DecodeError(
            f"invalid field selector: unescaped character in value: '{match[0]}'; put a backslash before it"
        )
    if match[1] not in ("\\", ",", "="):
        raise DecodeError(f"invalid field selector: invalid escape sequence: {match[0]}")
    return match[1]


def _field_term(part: str, text: str) -> FieldTerm:
    found = _OPERATOR.search(part)
    if found is None:
        raise DecodeError(f"invalid selector: '{text}'; can't understand '{part}'")
    value = _ESCAPE.sub(_unescape, part[found.end() :])
    return FieldTerm(part[: found.start()], "!=" if found[0] == "!=" else "=", value)
