"""UnknownValue: what an attribute holds when the stored value is none that its enum has.

An object outlives the class that wrote it: an enum loses a value, an attribute becomes required, an operator is rolled
back. Go decodes such objects, and an operator must be able to, or nobody can finalize them (decision 23). `Problems`
reads an object that its class cannot decode, attribute by attribute, and keeps what it finds as `FieldError`s:

- a value that an `Enum` or a `Literal` does not have is kept; of an `Enum` it is an `UnknownValue`;
- a required attribute that is missing has the zero value of its type, as in Go;
- a value of another type, or out of bounds, is kept as it is in the JSON.

`api.codec` calls this only for an object that msgspec refuses, so other objects pay nothing. No I/O.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, cast, final, get_args, get_origin

import msgspec

from kubewright.api.field_errors import FieldError, bad_value, unsupported
from kubewright.api.quantity import Quantity
from kubewright.api.times import Duration, MicroTime

__all__ = ("Problems", "UnknownValue", "enum_of", "zero_of")

E = TypeVar("E", bound=Enum)
Decode = Callable[[Any, Any], Any]

_UNIONS = (Union, types.UnionType)
_JSON_TYPES = (bool, int, float, str, list, dict)
_ZEROS: dict[Any, Any] = {
    bool: False,
    int: 0,
    float: 0.0,
    str: "",
    bytes: b"",
    datetime: datetime.fromtimestamp(0, UTC),
    MicroTime: MicroTime.fromtimestamp(0, UTC),
    Duration: Duration(),
    Quantity: Quantity(0),
}


class UnknownValue:
    """A value that the enum of its attribute does not have.

    It equals the string (or the number) that is stored and no member of the enum; `match` and `==` need no special
    case. `value` and `name` are there, as those of a member are.
    """

    __slots__ = ()

    @property
    def value(self) -> str | int:
        """The value as it is stored."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The value as text."""
        return str(self.value)


@final
class _UnknownString(UnknownValue, str):
    __slots__ = ()

    @property
    def value(self) -> str:
        return str.__str__(self)


@final
class _UnknownInteger(UnknownValue, int):
    __slots__ = ()

    @property
    def value(self) -> int:
        return int(self)


def enum_of(enum: type[E], value: Any) -> E:
    """The member of an enum with this value, or an `UnknownValue` if there is none.

    For converters: it passes a value on that neither version knows, as Go's `NewSize(old.Spec.Size)` does.
    """
    plain = value.value if isinstance(value, Enum | UnknownValue) else value
    try:
        return enum(plain)
    except ValueError:
        return cast("E", _unknown(plain))


def _unknown(value: str | int) -> UnknownValue:
    return _UnknownString(value) if isinstance(value, str) else _UnknownInteger(value)


@final
class Problems:
    """What is wrong with one object, found while it is read."""

    def __init__(self, decode: Decode) -> None:
        """`decode(type, value)` decodes a JSON value strictly, or raises msgspec's ValidationError."""
        self.found: list[FieldError] = []
        self._decode = decode

    def read(self, wanted: Any, value: Any, path: str) -> Any:
        """A JSON value as a value of this type, as far as it fits."""
        try:
            return self._decode(wanted, value)
        except msgspec.ValidationError as error:
            known = len(self.found)
            made = self._read_parts(_plain(wanted), value, path, error)
            if len(self.found) == known:  # its parts are in order, so it is the whole that is out of bounds
                self.found.append(bad_value(path, "Invalid", value, _sentence(error)))
            return made

    def read_members(self, model: type[msgspec.Struct], tree: dict[str, Any], path: str) -> Any:
        """An object of this class from the members of a JSON object."""
        members: dict[str, Any] = {}
        for field in _fields(model):
            place = f"{path}.{field.encode_name}" if path else field.encode_name
            if field.encode_name in tree and not self._is_absent(field.type, tree[field.encode_name]):
                members[field.name] = self.read(field.type, tree[field.encode_name], place)
            elif field.required:
                members[field.name] = zero_of(field.type)
                self.found.append(FieldError(place, "Required"))
        try:
            return model(**members)
        except (TypeError, ValueError) as error:  # raised by a `__post_init__`
            self.found.append(FieldError(path, "Invalid", str(error)))
            return _unchecked(model)(**members)

    def _is_absent(self, wanted: Any, value: Any) -> bool:
        """Null means absent, unless the attribute can hold it."""
        if value is not None:
            return False
        try:
            self._decode(wanted, None)
        except msgspec.ValidationError:
            return True
        return False

    def _read_parts(self, wanted: Any, value: Any, path: str, error: msgspec.ValidationError) -> Any:
        base, arguments = get_origin(wanted) or wanted, get_args(wanted)
        if base in _UNIONS:
            fitting = [choice for choice in map(_plain, arguments) if _fits(choice, value)]
            if len(fitting) == 1:
                return self._read_parts(fitting[0], value, path, error)
        elif _is_model(base) and isinstance(value, dict):
            return self.read_members(base, value, path)
        elif base is list and arguments and isinstance(value, list):
            return [self.read(arguments[0], item, f"{path}[{index}]") for index, item in enumerate(value)]
        elif base is dict and arguments and isinstance(value, dict):
            return {name: self.read(arguments[1], item, f"{path}[{name}]") for name, item in value.items()}
        elif _fits(wanted, value):
            if base is Literal:
                self.found.append(unsupported(path, value, map(str, arguments)))
                return value
            if _is_enum(base):
                self.found.append(unsupported(path, value, [str(member.value) for member in base]))
                return _unknown(value)
            self.found.append(bad_value(path, "Invalid", value, _sentence(error)))
            return value
        self.found.append(bad_value(path, "TypeInvalid", value, _sentence(error)))
        return value


def zero_of(wanted: Any) -> Any:
    """The zero value of a type, as Go has it; no enum has one, so it is an `UnknownValue` there."""
    wanted = _plain(wanted)
    base, arguments = get_origin(wanted) or wanted, get_args(wanted)
    if base in _UNIONS:
        return None if types.NoneType in arguments else zero_of(arguments[0])
    if base is Literal:
        return type(arguments[0])()
    if _is_enum(base):
        return _unknown(type(next(iter(base)).value)())
    if _is_model(base):
        return Problems(_refuse).read_members(base, {}, "")
    if base in (list, dict, set, tuple, frozenset):
        return base()
    return _ZEROS.get(base)


@cache
def _fields(model: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(model)  # it evaluates every annotation anew


def _refuse(wanted: Any, value: Any) -> Any:
    raise msgspec.ValidationError(f"nothing can be read of {wanted}: {value}")


def _plain(wanted: Any) -> Any:
    """The type without its annotations."""
    while get_origin(wanted) is Annotated:
        wanted = get_args(wanted)[0]
    return wanted


def _is_model(wanted: Any) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, msgspec.Struct)


def _is_enum(wanted: Any) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, Enum)


def _fits(wanted: Any, value: Any) -> bool:
    """Whether values of this type look like this one in JSON: texts, numbers, objects or lists."""
    base = get_origin(wanted) or wanted
    if _is_model(base):
        return isinstance(value, dict)
    if base is Literal:
        return type(value) in {type(known) for known in get_args(wanted)}
    if _is_enum(base):
        return type(value) in {type(member.value) for member in base}
    return base in _JSON_TYPES and type(value) is base


def _sentence(error: msgspec.ValidationError) -> str:
    what = str(error).partition(" - at `$")[0]
    return what[0].lower() + what[1:]


@cache
def _unchecked(model: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """The class without its `__post_init__`."""
    make: Any = type(model)  # the metaclass: what a class statement calls
    names = {"__module__": model.__module__, "__qualname__": model.__qualname__, "__post_init__": lambda _: None}
    return cast("type[msgspec.Struct]", make(model.__name__, (model,), names))
