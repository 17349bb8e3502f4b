"""ErrorFinder: every error of a value against a schema, with the API server's messages.

It walks schema and value in the order of the server's own validator (kube-openapi: pkg/validation/validate) and counts
matches as it does, because the count decides which branch of an `anyOf` is reported. It is slow and complete;
`check.quick_tests` passes valid values first. On an update, an invalid part that did not change is accepted, as far as
old and new can be correlated (ratcheting; apiextensions-apiserver: pkg/apiserver/validation/ratcheting.go).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, final

from kubewright._base.regexp import RegexpError, go_regexp
from kubewright.api.field_errors import FieldError, FieldErrorType, bad_value, too_long, too_many, unsupported
from kubewright.api.go_text import as_maps, format_value, number_text, quoted
from kubewright.schema.check.correlation import Correlation
from kubewright.schema.check.equality import deep_equal
from kubewright.schema.check.formats import format_test, is_known

__all__ = ("ErrorFinder", "is_integral", "json_type")

_NO_PATH: Final = "<nil>"
_INT64_LIMIT: Final = 2**63
_SAFE_INTEGER: Final = float(2**53 - 1)
_COMPOSITE: Final = "composite"
_MAX_ERRORS: Final = 1_000
_MAX_TEXT: Final = 1024 * 1024


class _Error(NamedTuple):
    """One error: field, type, value, message, and the limit if there is one."""

    name: str
    kind: str
    value: Any
    message: str
    limit: Any = None


@final
class _Result:
    """Errors without duplicates, and how many checks passed.

    After very many errors, or very long ones, the rest of a list or a map is not looked at: a response has no more.
    """

    __slots__ = ("errors", "length", "matches")

    def __init__(self) -> None:
        self.errors: dict[str, _Error] = {}
        self.matches = 0
        self.length = 0

    @property
    def is_full(self) -> bool:
        return len(self.errors) > _MAX_ERRORS or self.length > _MAX_TEXT

    def add(self, error: _Error) -> None:
        if self.errors.setdefault(error.message, error) is error:
            self.length += len(error.message)

    def merge(self, other: _Result) -> None:
        for error in other.errors.values():
            self.add(error)
        self.matches += other.matches


@final
class ErrorFinder:
    """Finds the errors of values against one schema.

    The server checks a default in a CRD a little differently from a value in an object: unknown formats count, and an
    int-or-string has no type; `of_default` says so.
    """

    def __init__(self, schema: Mapping[str, Any], *, of_default: bool = False) -> None:
        self._schema = schema
        self._of_default = of_default
        self._enums: dict[int, _Enum] = {}
        """By the identity of their lists, which the schema keeps alive."""

    def find(self, value: Any, *, prefix: str, correlation: Correlation | None = None) -> list[FieldError]:
        """All errors; `prefix` begins the paths but not the messages, as on the server."""
        result = self._value(value, self._schema, "", correlation)
        return [_field_error(error, prefix) for error in result.errors.values()]

    def _value(self, value: Any, schema: Mapping[str, Any], path: str, correlation: Correlation | None) -> _Result:
        result = self._validate(value, schema, path, correlation)
        if result.errors and correlation is not None and correlation.unchanged():
            result.errors.clear()
        return result

    def _validate(self, value: Any, schema: Mapping[str, Any], path: str, correlation: Correlation | None) -> _Result:
        result = _Result()
        types, format_name = self._types(schema), self._format(schema)
        if value is None:
            if types and not schema.get("nullable"):
                result.add(_type_error(path, ",".join(types), "null"))
            else:
                result.matches += 1
            result.merge(self._check_enum(value, schema, path))
            return result
        if types or format_name:
            result.merge(_check_type(value, types, format_name, path))
            result.matches += 1
        result.merge(self._check_combinators(value, schema, path))
        result.matches += 1
        if isinstance(value, str):
            result.merge(_check_text(value, schema, path))
            result.matches += 1
            if format_name and is_known(format_name):
                result.merge(_check_format(value, format_name, path))
                result.matches += 1
        elif isinstance(value, int | float) and not isinstance(value, bool):
            result.merge(_check_number(value, schema, path))
            result.matches += 1
        elif isinstance(value, list):
            result.merge(self._items(value, schema, path, correlation))
            result.matches += 1
        result.merge(self._check_enum(value, schema, path))
        result.matches += 1
        if isinstance(value, dict):
            result.merge(self._members(value, schema, path, correlation))
            result.matches += 1
        result.matches += 1
        return result

    def _types(self, schema: Mapping[str, Any]) -> list[str]:
        if schema.get("x-kubernetes-int-or-string") and not self._of_default:
            return ["integer", "string"]
        return [schema["type"]] if schema.get("type") else []

    def _format(self, schema: Mapping[str, Any]) -> str:
        format_name = str(schema.get("format") or "")
        return format_name if format_name and (self._of_default or is_known(format_name)) else ""

    def _check_combinators(self, value: Any, schema: Mapping[str, Any], path: str) -> _Result:
        result = _Result()
        if branches := schema.get("anyOf"):
            self._any_of(value, branches, path, result)
        if branches := schema.get("oneOf"):
            self._one_of(value, branches, path, result)
        if branches := schema.get("allOf"):
            self._all_of(value, branches, path, result)
        forbidden = schema.get("not")
        if forbidden is not None and not self._value(value, forbidden, path, None).errors:
            result.add(_composite(f"{quoted(path)} must not validate the schema (not)"))
        result.matches += 1
        return result

    def _any_of(self, value: Any, branches: Iterable[Mapping[str, Any]], path: str, result: _Result) -> None:
        best: _Result | None = None
        for branch in branches:
            found = self._value(value, branch, path, None)
            if not found.errors:
                result.merge(found)
                return
            if best is None or found.matches > best.matches:
                best = found
        result.add(_composite(f"{quoted(path)} must validate at least one schema (anyOf)"))
        if best is not None:
            result.merge(best)

    def _one_of(self, value: Any, branches: Iterable[Mapping[str, Any]], path: str, result: _Result) -> None:
        best: _Result | None = None
        valid: list[_Result] = []
        for branch in branches:
            found = self._value(value, branch, path, None)
            if not found.errors:
                valid.append(found)
            elif not valid and (best is None or found.matches > best.matches):
                best = found
        if len(valid) == 1:
            result.merge(valid[0])
            return
        count = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        result.add(_composite(f"{quoted(path)} must validate one and only one schema (oneOf). {count}"))
        if best is not None and not valid:
            result.merge(best)

    def _all_of(self, value: Any, branches: list[Mapping[str, Any]], path: str, result: _Result) -> None:
        valid = 0
        for branch in branches:
            found = self._value(value, branch, path, None)
            valid += not found.errors
            result.merge(found)
        if valid != len(branches):
            none = "" if valid else ". None validated"
            result.add(_composite(f"{quoted(path)} must validate all the schemas (allOf){none}"))

    def _check_enum(self, value: Any, schema: Mapping[str, Any], path: str) -> _Result:
        result = _Result()
        allowed = schema.get("enum")
        if not allowed:
            return result
        enum = self._enums.get(id(allowed))
        if enum is None:
            enum = self._enums[id(allowed)] = _Enum(allowed)
        if not enum.allows(value):
            text = f"{path} in body should be one of [{enum.listed}]"
            result.add(_Error(path, "NotSupported", value, text, enum.names))
        return result

    def _items(
        self, value: list[Any], schema: Mapping[str, Any], path: str, correlation: Correlation | None
    ) -> _Result:
        result = _Result()
        if isinstance(items := schema.get("items"), Mapping):
            for i, item in enumerate(value):
                if result.is_full:
                    break
                inner = correlation.index(i) if correlation is not None else None
                result.merge(self._value(item, items, f"{path}[{i}]", inner))
        size, low, high = len(value), schema.get("minItems"), schema.get("maxItems")
        if low is not None and size < low:
            result.add(_Error(path, "Invalid", size, f"{path} in body should have at least {low} items"))
        if high is not None and size > high:
            result.add(_Error(path, "TooMany", size, f"{path} in body should have at most {high} items", high))
        if schema.get("uniqueItems") and any(deep_equal(one, two) for i, one in enumerate(value) for two in value[:i]):
            result.add(_Error(path, "Invalid", "", f"{path} in body shouldn't contain duplicates"))
        result.matches += 1
        return result

    def _members(
        self, value: dict[str, Any], schema: Mapping[str, Any], path: str, correlation: Correlation | None
    ) -> _Result:
        result = _Result()
        _check_size(value, schema, path, result)
        properties: Mapping[str, Any] = schema.get("properties") or {}
        others = schema.get("additionalProperties")
        for key, member in value.items():
            if key in properties:
                continue
            if result.is_full:
                break
            if others is False:
                result.add(_Error(path, "Invalid", key, f"{path}.{key} in body is a forbidden property"))
            elif isinstance(others, Mapping):
                inner = correlation.key(key) if correlation is not None else None
                result.merge(self._value(member, others, f"{path}.{key}", inner))
        for name, child in properties.items():
            if result.is_full:
                break
            if name in value:
                inner = correlation.key(name) if correlation is not None else None
                if not path and name in ("kind", "apiVersion"):
                    inner = None  # they differ if the old object was stored in another version
                result.merge(self._value(value[name], child, f"{path}.{name}" if path else name, inner))
        for name in schema.get("required") or ():
            if name not in value:
                result.add(_Error(f"{path}.{name}", "Required", "", f"{path}.{name} in body is required"))
        return result


def json_type(value: Any) -> tuple[str, str]:
    """The type of a value in JSON schema, and the format that its Go type implies."""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, int):
        # The server decodes a number beyond 64 bits as a float.
        return ("integer", "int64") if -_INT64_LIMIT <= value < _INT64_LIMIT else ("number", "float64")
    if isinstance(value, float):
        return "number", "float64"
    return ("array", "") if isinstance(value, list) else ("object", "")


def is_integral(value: float) -> bool:
    """Whether the server takes a float for an integer: within the safe integers of JSON, and almost whole.

    As go-openapi/swag's IsFloat64AJSONInteger, whose conversion to uint64 wraps negative numbers.
    """
    if math.isnan(value) or math.isinf(value) or not -_SAFE_INTEGER <= value <= _SAFE_INTEGER:
        return False
    if value == math.trunc(value):
        return True
    whole = float(math.trunc(value)) if value >= 0 else float(math.trunc(value) + 2**64)
    if not whole:
        return False
    return abs(value - whole) / (abs(value) + abs(whole)) < 1e-9


def _field_error(error: _Error, prefix: str) -> FieldError:
    if error.kind == _COMPOSITE:
        return bad_value(prefix or _NO_PATH, "Invalid", "", error.message)
    name = error.name.removeprefix(".")
    path = f"{prefix}.{name}" if prefix and name else prefix or name or _NO_PATH
    match error.kind:
        case "Required":
            return FieldError(path, "Required")
        case "NotSupported":
            return unsupported(path, error.value, error.limit)
        case "TooLong":
            return too_long(path, error.limit)
        case "TooMany":
            return too_many(path, error.value, error.limit)
    kind: FieldErrorType = "TypeInvalid" if error.kind == "TypeInvalid" else "Invalid"
    return bad_value(path, kind, error.value, error.message)


def _composite(message: str) -> _Error:
    return _Error("", _COMPOSITE, "", message)


def _type_error(path: str, wanted: str, found: str) -> _Error:
    return _Error(path, "TypeInvalid", found, f"{path} in body must be of type {wanted}: {quoted(found)}")


def _check_type(value: Any, types: list[str], format_name: str, path: str) -> _Result:
    result = _Result()
    kind, implied = json_type(value)
    fits = (
        kind in types
        or (kind == "number" and "integer" in types and is_integral(float(value)))
        or (kind == "integer" and "number" in types)
    )
    if format_name and kind not in ("string", "array"):
        if not fits and implied != format_name:
            result.add(_type_error(path, format_name, implied))
            return result
    elif format_name and "number" not in types and "integer" not in types:
        fits = True  # the check of the format decides
    if fits:
        result.matches += 1
    else:
        result.add(_type_error(path, ",".join(types), kind))
    return result


def _check_text(value: str, schema: Mapping[str, Any], path: str) -> _Result:
    """The first violation of length or pattern."""
    result = _Result()
    high, low, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if high is not None and len(value) > high:
        result.add(_Error(path, "TooLong", value, f"{path} in body should be at most {high} chars long", high))
    elif low is not None and len(value) < low:
        result.add(_Error(path, "Invalid", value, f"{path} in body should be at least {low} chars long"))
    elif pattern:
        try:
            matched, wanted = go_regexp(pattern).match_string(value), pattern
        except RegexpError as exc:
            matched, wanted = False, f"{pattern}, but pattern is invalid: {exc}"
        if not matched:
            result.add(_Error(path, "Invalid", value, f"{path} in body should match '{wanted}'"))
    return result


def _check_format(value: str, format_name: str, path: str) -> _Result:
    result = _Result()
    test = format_test(format_name)
    if test is not None and not test(value):
        result.add(_type_error(path, format_name, value))
    return result


def _check_number(value: float, schema: Mapping[str, Any], path: str) -> _Result:
    result = _Result()
    native = isinstance(value, int) and -_INT64_LIMIT <= value < _INT64_LIMIT
    number: float = value if native else float(value)
    if (factor := schema.get("multipleOf")) is not None:
        _check_multiple(number, _bound_like(factor, native), path, result)
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None:
        bound, exclusive = _bound_like(low, native), bool(schema.get("exclusiveMinimum"))
        if number < bound or (exclusive and number == bound):
            words = "greater than" if exclusive else "greater than or equal to"
            result.add(_Error(path, "Invalid", number, f"{path} in body should be {words} {number_text(bound)}"))
    if high is not None:
        bound, exclusive = _bound_like(high, native), bool(schema.get("exclusiveMaximum"))
        if number > bound or (exclusive and number == bound):
            words = "less than" if exclusive else "less than or equal to"
            result.add(_Error(path, "Invalid", number, f"{path} in body should be {words} {number_text(bound)}"))
    result.matches += 1
    return result


def _bound_like(bound: float, native: bool) -> float:
    """A bound in the type of the value: the server truncates it to an integer for integers."""
    if not native:
        return float(bound)
    whole = math.trunc(float(bound))
    return whole if -_INT64_LIMIT <= whole < _INT64_LIMIT else -_INT64_LIMIT


def _check_multiple(number: float, factor: float, path: str, result: _Result) -> None:
    if factor <= 0:
        text = f"factor MultipleOf declared for {path} must be positive: {number_text(factor)}"
        result.add(_Error(path, "Invalid", factor, text))
        return
    if isinstance(number, int):
        fits = number % int(factor) == 0
    else:
        fits = is_integral(1 / factor * number if factor < 1 else number / factor)
    if not fits:
        result.add(_Error(path, "Invalid", number, f"{path} in body should be a multiple of {number_text(factor)}"))


@final
class _Enum:
    """The allowed values of one schema, and how errors name them; made once, since lists may be long on both sides."""

    def __init__(self, allowed: list[Any]) -> None:
        self._texts = {one for one in allowed if isinstance(one, str)}
        self._others = [one for one in allowed if not isinstance(one, str)]
        self.names = [one if isinstance(one, str) else json_text(one) for one in allowed]
        self.listed = " ".join(_go_text(one) for one in allowed)

    def allows(self, value: Any) -> bool:
        """Whether the value equals an allowed one after Go's reflect.Convert to its type."""
        if isinstance(value, str):
            return value in self._texts
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and 0 <= value <= 0x10FFFF
            and chr(value) in self._texts
        ):
            return True
        return any(_converts(value, one) for one in self._others)


def _converts(value: Any, allowed: Any) -> bool:
    """Whether a value equals an allowed one, which is no text, in the type of that."""
    if value is None or allowed is None:
        return False
    if isinstance(value, bool) or isinstance(allowed, bool):
        return value is allowed
    if isinstance(value, int | float) and isinstance(allowed, int | float):
        return (float(value) if isinstance(allowed, float) else math.trunc(value)) == allowed
    return deep_equal(value, allowed)


def json_text(value: Any) -> str:
    """A value as JSON, without the rules for plain numbers in messages."""
    text = format_value(as_maps([value]))
    return text[1:-1]


def _go_text(value: Any) -> str:
    return value if isinstance(value, str) else format_value(as_maps(value))


def _check_size(value: dict[str, Any], schema: Mapping[str, Any], path: str, result: _Result) -> None:
    size, low, high = len(value), schema.get("minProperties"), schema.get("maxProperties")
    if low is not None and size < low:
        result.add(_Error(path, "Invalid", size, f"{path} in body should have at least {low} properties"))
    if high is not None and size > high:
        result.add(_Error(path, "TooMany", size, f"{path} in body should have at most {high} properties", high))
