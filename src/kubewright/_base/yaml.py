"""YAML as Kubernetes reads it, and a writer whose output every reader understands the same way.

For manifests and kubeconfig files; the wire format is JSON. Reading returns a JSON tree (dict with text keys, list,
str, int, float, bool, None), never a date or an object. Scalars follow the library of Kubernetes (sigs.k8s.io/yaml)
and not YAML 1.2 or PyYAML, because two readers of one text must agree: `y`, `yes` and `on` are true, `017` and `0o17`
are 15, `1_000` is 1000; `12:30` and `2026-01-01` stay text.

No other module imports PyYAML. Errors are `ValueError`: one sentence with line and column, and never with a value from
the text, which may be a secret.
"""

from __future__ import annotations

import copy
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, final

import yaml

try:
    from yaml import CSafeLoader as _Parser
except ImportError:  # PyYAML without libyaml: the same events, about seven times slower
    from yaml import SafeLoader as _Parser  # type: ignore[assignment] # the Python implementation of the same class

__all__ = ("TooManyValuesError", "dump", "dump_all", "load", "load_all")

_MAX_DEPTH = 200
"""Far above any manifest, far below what exhausts the stack of this process or of a JSON reader."""

_MAX_ALIASED = 100_000
"""How many values aliases may repeat: a few lines of nested aliases could otherwise fill the memory."""

_MAX_ALIASED_CHARACTERS = 3 * 1024 * 1024
"""How much text aliases may repeat: no API server takes a larger object, written out."""

_EXCESSIVE = "document contains excessive aliasing"
"""The words of go-yaml, which has no place in the text for it either."""

_MAX_REPEATED = 1_000
"""How many repeated keys are reported."""

_MAX_SHOWN_KEY = 1_024
"""How much of a key an error shows."""

_TAG = "tag:yaml.org,2002:"

_WORDS: dict[str, bool | None] = {
    word: value
    for value, words in ((True, "y yes true on"), (False, "n no false off"), (None, "null"))
    for lower in words.split()
    for word in (lower, lower.capitalize(), lower.upper())
} | {"": None, "~": None}

_NOT_A_JSON_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]{0,19}))")
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9])_(?=[0-9])")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class TooManyValuesError(ValueError):
    """The text has more values than the caller allows."""


def load(
    text: str | bytes, *, repeated: list[str] | None = None, first: bool = False, max_values: int | None = None
) -> Any:
    """The one document in the text, or with `first` the first; None if there is none.

    A key that occurs twice in one mapping is an error; with `repeated` the last one counts, and each further one is
    added there as `line 3: key "a" already set in map`. More than `max_values` values raise `TooManyValuesError`.
    """
    if first:
        return next(iter(_Reader(text, repeated, max_values).documents()), None)
    documents = list(_Reader(text, repeated, max_values).documents())
    if len(documents) > 1:
        raise ValueError(f"one YAML document was expected, and the text holds {len(documents)}")
    return documents[0] if documents else None


def load_all(text: str | bytes) -> list[Any]:
    """Every document in the text, in order; empty ones are left out, as in kubectl."""
    return [document for document in _Reader(text).documents() if document is not None]


def dump(tree: Any) -> str:
    """A JSON tree as one block-style document: keys in their order, no aliases, ending with a line break.

    Text that any of Kubernetes, PyYAML and YAML 1.2 would read as something else is quoted.
    """
    lines: list[str] = []
    _write(tree, lines, "", "", 0)
    return "\n".join(lines) + "\n"


def dump_all(trees: Iterable[Any]) -> str:
    """Several documents, separated by `---`."""
    return "---\n".join(dump(tree) for tree in trees)


@final
class _Reader:
    """Builds trees from parser events.

    Events rather than PyYAML's nodes: its C composer recurses without a limit, so that deep nesting would
    crash the process instead of raising.
    """

    def __init__(self, text: str | bytes, repeated: list[str] | None = None, max_values: int | None = None) -> None:
        self._text = _decode(text)
        self._repeated_keys = repeated
        self._left = sys.maxsize if max_values is None else max_values
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        """The value of each anchor, how many values it has, and how many characters their texts have."""
        self._count = 0
        self._characters = 0
        self._aliased = 0
        self._aliased_characters = 0

    def documents(self) -> Iterator[Any]:
        try:
            # The class of an event depends on its place in the text, which the stubs cannot express.
            self._next: Callable[[], Any] = _Parser(self._text).get_event
            while not isinstance(event := self._next(), yaml.StreamEndEvent):
                if isinstance(event, yaml.DocumentStartEvent):
                    self._anchors.clear()
                    yield self._value(self._next(), 0)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise _error_at(_problem(error), mark) from None
        except yaml.reader.ReaderError as error:
            raise ValueError(_character_error(self._text, error)) from None

    def _value(self, event: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise _error_at(f"the nesting is deeper than {_MAX_DEPTH} levels", event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        count, characters = self._count, self._characters
        self._count += 1
        if self._count > self._left:
            raise TooManyValuesError(f"the text has more than {self._left} values")
        value: Any
        if isinstance(event, yaml.ScalarEvent):
            self._characters += len(event.value)
            value = _scalar(event)
        elif event.tag not in (None, "!", f"{_TAG}seq", f"{_TAG}map"):
            raise _error_at("the tag is not one that JSON data can have", event.start_mark)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(depth)
        else:
            value = self._mapping(depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._count - count, self._characters - characters)
        return value

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise _error_at("an alias names an anchor that is not complete before it", event.start_mark)
        value, count, characters = self._anchors[event.anchor]
        self._count += count
        self._characters += characters
        self._aliased += count
        self._aliased_characters += characters
        if self._aliased > _MAX_ALIASED or self._aliased_characters > _MAX_ALIASED_CHARACTERS:
            raise ValueError(_EXCESSIVE)
        return copy.deepcopy(value)

    def _sequence(self, depth: int) -> list[Any]:
        items = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._value(event, depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[Any] = []
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
                merged.append((event.start_mark, self._value(self._next(), depth + 1)))
                continue
            key = _key(self._value(event, depth + 1), event.start_mark)
            if key in found:
                if self._repeated_keys is None:
                    raise _error_at(f"the key {_shown(key)} occurs here a second time", event.start_mark)
                if len(self._repeated_keys) < _MAX_REPEATED:
                    line = event.start_mark.line + 1
                    self._repeated_keys.append(f"line {line}: key {_shown(key)} already set in map")
            found[key] = self._value(self._next(), depth + 1)
        for mark, value in merged:
            for part in value if isinstance(value, list) else [value]:
                if not isinstance(part, dict):
                    raise _error_at("the merge key << takes a mapping or a list of mappings", mark)
                for key, inner in part.items():
                    found.setdefault(key, inner)
        return found


def _shown(key: str) -> str:
    return json.dumps(key if len(key) <= _MAX_SHOWN_KEY else f"{key[:_MAX_SHOWN_KEY]}...")


def _decode(text: str | bytes) -> str:
    if isinstance(text, bytes):
        try:
            return text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = text.count(b"\n", 0, error.start) + 1
            raise ValueError(f"line {line} is not UTF-8 text (byte {error.start})") from None
    return text.removeprefix("\ufeff")


def _error_at(problem: str, mark: Any) -> ValueError:
    return ValueError(f"line {mark.line + 1}, column {mark.column + 1}: {problem}")


def _problem(error: yaml.MarkedYAMLError) -> str:
    problem = " ".join(str(error.problem or error.context or "the text is not YAML").split())
    # The quoted part is a piece of the text itself, which may be a secret.
    return re.sub(r"(alias|tag handle|anchor) '.*'", r"\1", problem)


def _character_error(text: str, error: yaml.reader.ReaderError) -> str:
    for number, line in enumerate(text.split("\n"), 1):
        if line.isprintable():
            continue
        for column, character in enumerate(line, 1):
            if not (character.isprintable() or character in "\t\r\x85\xa0\u2028\u2029\ufeff"):
                code = f"U+{ord(character):04X}"
                return f"line {number}, column {column}: the character {code} is not allowed in YAML"
    return f"the text is not YAML: {' '.join(str(error.reason).split())}"


def _scalar(event: Any) -> Any:
    tag: str | None = event.tag
    if tag in (None, "!"):
        return _plain(event.value, event.start_mark) if event.implicit[0] else event.value
    name = tag.removeprefix(_TAG) if tag else ""
    if name in ("str", "timestamp"):
        return event.value
    kinds: dict[str, tuple[type, ...]] = {
        "int": (int,),
        "float": (int, float),
        "bool": (bool,),
        "null": (type(None),),
    }
    if name not in kinds:
        raise _error_at("the tag is not one that JSON data can have", event.start_mark)
    value = _plain(event.value, event.start_mark)
    if type(value) not in kinds[name]:
        raise _error_at(f"the value is not of the type its tag !!{name} says", event.start_mark)
    return value


def _plain(text: str, mark: Any) -> Any:
    """The value of a scalar without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    if _NOT_A_JSON_NUMBER.fullmatch(text):
        raise _error_at("infinity and not-a-number cannot be written as JSON", mark)
    return _number(text)


def _number(text: str) -> int | float | str:
    # Kubernetes drops every underscore, but after a leading point only those between digits.
    digits = _BETWEEN_DIGITS.sub("", text) if text[0] == "." else text.replace("_", "")
    if match := _INTEGER.fullmatch(digits):
        sign, hexadecimal, binary, octal, decimal = match.groups()
        for found, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)):
            if found is not None:
                value = int(found, base)
        if value < 2**63 or (value < 2**64 and not sign) or (value == 2**63 and sign == "-"):
            return -value if sign == "-" else value
    if _FLOAT.fullmatch(digits) and math.isfinite(number := float(digits)):
        # Kubernetes turns YAML into JSON first, and its JSON writes 1.0 as 1: an integer field accepts it.
        return int(number) if number.is_integer() and abs(number) < 2**63 else number
    return text


def _key(value: Any, mark: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise _error_at("a key must be text, not empty, a list or a mapping", mark)


# Writer -----------------------------------------------------------------------------------------------------

_NUMBER_LIKE = re.compile(r"[-+]?\.?[0-9][-+0-9a-fA-FxXoO_.:TtZz ]*")
"""Wider than any reader's numbers and dates: text that matches is quoted."""

_PLAIN = re.compile(r"(?:[^\W]|[/$(.]|-[A-Za-z_-])(?:[^:#]|:(?! |$)|(?<! )#)*+")
"""Text that may begin and go on without quotes in a block; `_is_plain` adds what a pattern cannot express.

It never goes back: to remember where it could takes a hundred bytes for each character."""


def _write(value: Any, lines: list[str], first: str, rest: str, depth: int) -> None:
    """Append the lines of a value: the first one after `first`, the others after `rest`."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"the tree is nested deeper than {_MAX_DEPTH} levels, which no reader accepts")
    if isinstance(value, Mapping) and value:
        _write_mapping(value, lines, first, rest, depth)
    elif isinstance(value, list | tuple) and value:
        for item in value:
            _write(item, lines, f"{first}- ", f"{rest}  ", depth + 1)
            first = rest
    elif isinstance(value, str) and _can_be_literal(value):
        _write_literal(value, lines, first, rest)
    else:
        lines.append(first + _inline(value))


def _write_mapping(value: Mapping[Any, Any], lines: list[str], first: str, rest: str, depth: int) -> None:
    for key, item in value.items():
        if not isinstance(key, str):
            raise ValueError(f"the key {key!r} is not text; YAML for Kubernetes has text keys only")
        name = _quote_if_needed(key)
        # Readers look at most 1024 characters ahead for the colon after a key.
        lead = f"{first}{name}:" if len(name) < 256 else f"{first}? {name}\n{rest}:"
        if isinstance(item, Mapping) and item:
            lines.append(lead)
            _write(item, lines, f"{rest}  ", f"{rest}  ", depth + 1)
        elif isinstance(item, list | tuple) and item:
            lines.append(lead)
            _write(item, lines, rest, rest, depth + 1)
        else:
            _write(item, lines, f"{lead} ", f"{rest}  ", depth + 1)
        first = rest


def _write_literal(text: str, lines: list[str], first: str, rest: str) -> None:
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    lines.append(f"{first}|{'-' if ends == 0 else '' if ends == 1 else '+'}")
    indent = rest or "  "
    lines.extend(f"{indent}{line}" if line else "" for line in body.split("\n"))
    lines.extend("" for _ in range(ends - 1))


def _can_be_literal(text: str) -> bool:
    if "\n" not in text or text[0].isspace():
        return False
    if not text.rstrip("\n").rpartition("\n")[2].strip():
        return False
    return all(character.isprintable() or character in "\n\t" for character in text)


def _inline(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quote_if_needed(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        written = repr(value)
        # PyYAML takes an exponent only after a point.
        return written if "." in written else written.replace("e", ".0e")
    if isinstance(value, Mapping | list | tuple):
        return "[]" if isinstance(value, list | tuple) else "{}"
    raise ValueError(f"a value of type {type(value).__name__} cannot be written as YAML for Kubernetes")


def _quote_if_needed(text: str) -> str:
    return text if _is_plain(text) else _quote(text)


def _is_plain(text: str) -> bool:
    if text in _WORDS or not text.isprintable() or text[-1] == " ":
        return False
    if text.startswith(("---", "...")) or _NUMBER_LIKE.fullmatch(text) or _NOT_A_JSON_NUMBER.fullmatch(text):
        return False
    return _PLAIN.fullmatch(text) is not None


def _quote(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("text with half of a surrogate pair cannot be written as YAML") from None
    return "".join(
        character if character.isprintable() and character not in '"\\' else _escape(character) for character in text
    ).join('""')


def _escape(character: str) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    if short is not None:
        return short
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
