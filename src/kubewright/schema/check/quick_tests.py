"""Fast tests compiled from a schema, one closure per node, that pass values which are certainly valid.

False means "not certain": `check.error_finder`, `check.list_types` and `check.embedded` decide, and may find nothing.
So corner cases that only they know are not repeated here. `check.validation` calls this first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kubewright._base.regexp import Regexp, RegexpError, go_regexp
from kubewright.schema.check.embedded import embedded_errors
from kubewright.schema.check.error_finder import ErrorFinder
from kubewright.schema.check.formats import format_test

__all__ = ("Test", "compile_test")

Test: TypeAlias = Callable[[Any], bool]

_LOW: Final = -(2**63)
_HIGH: Final = 2**63 - 1
_SAFE: Final = 2**53 - 1


def compile_test(schema: Mapping[str, Any], *, of_default: bool = False) -> Test:
    """The test for a schema."""
    if schema.get("type") == "string" and _is_plain_enum(schema):
        test = _enum(schema["enum"])
        return _never if schema.get("nullable") else test
    test = _by_type(schema, of_default)
    for extra in _extra(schema, of_default):
        test = _both(test, extra)
    return _or_null(test) if schema.get("nullable") and not schema.get("enum") else test


def _is_plain_enum(schema: Mapping[str, Any]) -> bool:
    """The most frequent constraint has a test of its own: an enum of strings and no other keyword."""
    allowed = schema.get("enum") or []
    names = schema.keys() - {"type", "enum", "default", "description", "title", "example", "nullable"}
    return bool(allowed) and not names and all(type(one) is str for one in allowed)


def _by_type(schema: Mapping[str, Any], of_default: bool) -> Test:
    if schema.get("x-kubernetes-int-or-string"):
        return _never if of_default else _integer_or_string(schema)
    match schema.get("type"):
        case "string":
            return _string(schema)
        case "integer":
            return _integer(schema)
        case "number":
            return _number(schema)
        case "boolean":
            return _is_boolean
        case "array":
            return _array(schema, of_default)
        case "object":
            return _object(schema, of_default)
        case None | "":
            return _untyped(schema, of_default)
    return _never


def _untyped(schema: Mapping[str, Any], of_default: bool) -> Test:
    """Without a type, every keyword applies to the values it is about."""
    if schema.get("format"):
        return _never
    # Compiled when a value is there: branches of allOf and the like have no type, may be thousands, and see one type.
    tests: dict[type, Test] = {}

    def test(value: Any) -> bool:
        kind = type(value)
        found = tests.get(kind)
        if found is None:
            found = tests[kind] = _of_type(kind, schema, of_default)
        return found(value)

    return test


def _of_type(kind: type, schema: Mapping[str, Any], of_default: bool) -> Test:
    if kind is str:
        return _string(schema)
    if kind is int:
        return _integer(schema)
    if kind is float:
        return _number(schema)
    if kind is list:
        return _array(schema, of_default)
    if kind is dict:
        return _object(schema, of_default)
    return _is_boolean if kind is bool else _never if schema.get("enum") else _always


def _always(value: Any) -> bool:
    return True


def _never(value: Any) -> bool:
    return False


def _is_boolean(value: Any) -> bool:
    return value is True or value is False


def _is_string(value: Any) -> bool:
    return type(value) is str


def _both(one: Test, two: Test) -> Test:
    return lambda value: one(value) and two(value)


def _integer_or_string(schema: Mapping[str, Any]) -> Test:
    number, text = _integer(schema), _string(schema)
    if text is _is_string:
        return lambda value: type(value) is str or number(value)
    return lambda value: text(value) or number(value)


def _or_null(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _extra(schema: Mapping[str, Any], of_default: bool) -> list[Test]:
    extra: list[Test] = []
    if allowed := schema.get("enum"):
        extra.append(_enum(allowed))
    for keyword, combine in (("anyOf", _any_of), ("allOf", _all_of)):
        if branches := schema.get(keyword):
            extra.append(combine([compile_test(branch, of_default=of_default) for branch in branches]))
    if branches := schema.get("oneOf"):
        extra.append(_one_of([_exact(branch, of_default) for branch in branches]))
    if (forbidden := schema.get("not")) is not None:
        fits = _exact(forbidden, of_default)
        extra.append(lambda value: not fits(value))
    if schema.get("x-kubernetes-embedded-resource"):
        extra.append(lambda value: not embedded_errors(value, None, root=True))
    return extra


def _enum(allowed: list[Any]) -> Test:
    if all(type(one) is str for one in allowed):
        names = frozenset(allowed)
        return lambda value: type(value) is str and value in names
    return lambda value: any(type(value) is type(one) and value == one for one in allowed if type(one) in (str, int))


def _any_of(tests: list[Test]) -> Test:
    return lambda value: any(test(value) for test in tests)


def _exact(schema: Mapping[str, Any], of_default: bool) -> Test:
    """A test whose False is certain as well."""
    test = compile_test(schema, of_default=of_default)
    finder = ErrorFinder(schema, of_default=of_default)
    return lambda value: test(value) or not finder.find(value, prefix="")


def _one_of(tests: list[Test]) -> Test:
    return lambda value: sum(test(value) for test in tests) == 1


def _all_of(tests: list[Test]) -> Test:
    return lambda value: all(test(value) for test in tests)


def _string(schema: Mapping[str, Any]) -> Test:
    low, high = schema.get("minLength") or 0, schema.get("maxLength")
    tests: list[Callable[[str], object]] = []
    if pattern := schema.get("pattern"):
        try:
            tests.append(_match(go_regexp(pattern)))
        except RegexpError:
            return _never
    if (format_name := schema.get("format")) and (check := format_test(format_name)) is not None:
        tests.append(check)
    if not tests and not low and high is None:
        return _is_string
    highest = _HIGH if high is None else high
    if not tests:
        return lambda value: type(value) is str and low <= len(value) <= highest
    if len(tests) == 1:
        test = tests[0]
        return lambda value: type(value) is str and low <= len(value) <= highest and bool(test(value))
    return lambda value: type(value) is str and low <= len(value) <= highest and all(check(value) for check in tests)


def _match(regexp: Regexp) -> Callable[[str], bool]:
    def test(value: str) -> bool:
        try:
            return regexp.match_string(value)
        except RegexpError:
            return False  # too much work; the error finder says so

    return test


def _integer(schema: Mapping[str, Any]) -> Test:
    low, high, step = (_whole(schema.get(name)) for name in ("minimum", "maximum", "multipleOf"))
    if any(isinstance(bound, float) for bound in (low, high, step)):
        return _never  # the server truncates the bound to an integer
    lowest = _LOW if low is None else low + bool(schema.get("exclusiveMinimum"))
    highest = _HIGH if high is None else high - bool(schema.get("exclusiveMaximum"))
    if lowest < _LOW or highest > _HIGH or (step is not None and step <= 0):
        return _never
    if step is not None:
        return lambda value: type(value) is int and lowest <= value <= highest and value % step == 0
    return lambda value: type(value) is int and lowest <= value <= highest


def _whole(bound: float | None) -> float | None:
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


def _number(schema: Mapping[str, Any]) -> Test:
    low, high = _whole(schema.get("minimum")), _whole(schema.get("maximum"))
    if schema.get("multipleOf") is not None or schema.get("exclusiveMinimum") or schema.get("exclusiveMaximum"):
        return _never
    lowest = float("-inf") if low is None else low
    highest = float("inf") if high is None else high
    if isinstance(low, float) or isinstance(high, float):
        return lambda value: type(value) is float and lowest <= value <= highest
    return lambda value: (
        (type(value) is float or (type(value) is int and -_SAFE <= value <= _SAFE)) and lowest <= value <= highest
    )


def _array(schema: Mapping[str, Any], of_default: bool) -> Test:
    low, high = schema.get("minItems") or 0, schema.get("maxItems")
    highest = _HIGH if high is None else high
    items = schema.get("items")
    if schema.get("uniqueItems"):
        return _never
    item: Test = compile_test(items, of_default=of_default) if isinstance(items, Mapping) else _always
    distinct = _distinct(schema)

    def test(value: Any) -> bool:  # hot
        if type(value) is not list or not low <= len(value) <= highest:
            return False
        for member in value:
            if not item(member):
                return False
        return distinct is None or len(value) < 2 or distinct(value)

    return test


def _distinct(schema: Mapping[str, Any]) -> Test | None:
    """Unhashable items, and equal numbers of two types, do not pass; `check.list_types` decides."""
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        return _all_differ
    if kind == "map":
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        return lambda value: _keys_differ(value, keys)
    return None


def _keys_differ(value: list[Any], keys: tuple[str, ...]) -> bool:
    try:
        if len(keys) == 1:
            name = keys[0]
            return _all_differ([member.get(name) for member in value])
        return _all_differ([tuple(map(member.get, keys)) for member in value])
    except AttributeError:
        return False


def _all_differ(values: list[Any]) -> bool:
    try:
        return len(set(values)) == len(values)
    except TypeError:
        return False


def _object(schema: Mapping[str, Any], of_default: bool) -> Test:
    low, high = schema.get("minProperties") or 0, schema.get("maxProperties")
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    required = tuple(schema.get("required") or ())
    tests = {name: compile_test(child, of_default=of_default) for name, child in properties.items()}
    find = tests.get
    rest: Test | None = compile_test(others, of_default=of_default) if isinstance(others, Mapping) else None
    if others is False:
        rest = _never
    highest = _HIGH if high is None else high

    def test(value: Any) -> bool:  # hot
        if type(value) is not dict:
            return False
        for name, member in value.items():
            check = find(name, rest)
            if check is not None and not check(member):
                return False
        for name in required:
            if name not in value:
                return False
        return low <= len(value) <= highest

    return test
