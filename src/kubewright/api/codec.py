"""Bytes to typed objects and back, and deep copies.

One cached decoder per class. The client, the cache and the webhooks rely on four properties:

- null means absent, as it does in Go: a server that sends `"endpoints": null` for a list is understood;
- an object can keep the bytes it was read from (`read`). `api.changes` compares with them, so a write sends only the
  changes and never drops a field the class does not know;
- what a server has stored can be read, also if the class has no such value (`read`, `decode_stored`): the object has
  `problems_of` it. What a person gives (`decode`, `from_tree`) must fit;
- a deep copy costs one encode and one decode.

No I/O. `apiVersion` and `kind` are facts of the class: written here in front of the fields, skipped when reading.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, TypeVar, cast

import msgspec

from kubewright._base.deep_json import DeepDecoder
from kubewright.api.dynamic import DynamicObject
from kubewright.api.field_errors import FieldError
from kubewright.api.metadata import ObjectMeta
from kubewright.api.model import Model
from kubewright.api.quantity import Quantity
from kubewright.api.resource import KubeObject
from kubewright.api.times import Duration, MicroTime, format_micro_time
from kubewright.api.unknown_values import Problems, UnknownValue
from kubewright.errors import DecodeError

__all__ = (
    "copy_of",
    "decode",
    "decode_stored",
    "decode_tree",
    "encode",
    "encode_tree",
    "from_tree",
    "is_partial",
    "origin_of",
    "problems_of",
    "read",
    "to_tree",
)

M = TypeVar("M", bound=Model)
K = TypeVar("K", bound=KubeObject)

_ORIGIN = "_origin"
_PARTIAL = "_partial"
_PROBLEMS = "_problems"


def decode(cls: type[M], data: bytes | msgspec.Raw) -> M:  # hot
    """An object of this class from its JSON; a DecodeError if the JSON does not fit the class."""
    try:
        obj: M = _decoder(cls)(data)
        return obj
    except msgspec.ValidationError as exc:
        return _decode_without_nulls(cls, data, exc)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise DecodeError(f"{cls.__name__}: the bytes are not valid JSON: {exc}") from exc


def decode_stored(cls: type[M], data: bytes | msgspec.Raw) -> M:
    """As `decode`, of what a server has stored, also if the class does not know a value in it (decision 23).

    An object has `problems_of` it then. Only metadata must fit: without it there is no object.
    """
    try:
        return decode(cls, data)
    except DecodeError as exc:
        return _decode_with_problems(cls, data, exc)


def read(cls: type[K], data: bytes, *, partial: bool = False) -> K:  # hot
    """As `decode_stored`, and the object keeps these bytes alive for `api.changes`.

    `partial` says that the bytes are not all the server has of the object.
    """
    try:
        obj = decode(cls, data)  # and not `decode_stored`: one call less for each object
    except DecodeError as exc:
        obj = _decode_with_problems(cls, data, exc)
    obj.__dict__[_ORIGIN] = data
    if partial:
        obj.__dict__[_PARTIAL] = True
    return obj


def origin_of(obj: KubeObject) -> bytes | None:
    """The bytes the object was read from, if it was read."""
    return cast("bytes | None", obj.__dict__.get(_ORIGIN))


def problems_of(obj: KubeObject) -> tuple[FieldError, ...]:
    """What the class did not know of the object when it was read: values, types, required attributes.

    Empty for nearly every object. The value of such an attribute is an `UnknownValue` if it is an enum, the zero value
    if it is missing, and else what the JSON has. Writes carry it along unchanged.
    """
    return cast("tuple[FieldError, ...]", obj.__dict__.get(_PROBLEMS, ()))


def is_partial(obj: KubeObject) -> bool:
    """Whether the object, or its class, has only some of the fields on the server: an update would lose the rest."""
    return obj.__definition__.partial or _PARTIAL in obj.__dict__


def encode(obj: Model, *, with_status: bool = True) -> bytes:  # hot
    """The JSON of an object, as the class sees it.

    `with_status=False` leaves the status out: the server ignores it where status is a subresource.
    """
    if not isinstance(obj, KubeObject):
        return _ENCODER.encode(obj)
    if not with_status and hasattr(obj, "status"):
        obj = copy.copy(obj)
        obj.status = msgspec.UNSET  # on a throw-away shallow copy: msgspec skips it
    if isinstance(obj, DynamicObject):
        return _encode_dynamic(obj, with_status=with_status)
    fields = _ENCODER.encode(obj)
    head = _head(type(obj))
    return head + b"}" if fields == b"{}" else head + b"," + fields[1:]


def copy_of(obj: M) -> M:
    """A deep copy. It keeps the same original bytes."""
    copied = decode_stored(type(obj), encode(obj))
    if isinstance(obj, KubeObject):
        copied.__dict__.update(obj.__dict__)
    return copied


def to_tree(obj: Model) -> dict[str, Any]:
    """The object as plain dicts, lists and scalars, as in its JSON."""
    return cast("dict[str, Any]", _TREE_DECODER.decode(encode(obj)))


def from_tree(cls: type[M], tree: Any) -> M:
    """The reverse of `to_tree`."""
    return decode(cls, encode_tree(tree))


def decode_tree(data: bytes | msgspec.Raw) -> Any:
    """JSON to plain dicts, lists and scalars."""
    try:
        return _TREE_DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise DecodeError(f"the bytes are not valid JSON: {exc}") from exc


def encode_tree(tree: Any) -> bytes:
    """Plain data, or models inside plain data, to JSON."""
    return _ENCODER.encode(tree)


@cache
def _decoder(cls: type[Any]) -> Callable[[bytes | msgspec.Raw], Any]:
    if issubclass(cls, DynamicObject):
        return partial(_decode_dynamic, cls)
    return DeepDecoder[Any](cls, dec_hook=_decode_value).decode


@cache
def _head(cls: type[KubeObject]) -> bytes:
    names = {"apiVersion": cls.api_version, "kind": cls.kind}
    return msgspec.json.encode(names)[:-1]


class _MetadataOnly(msgspec.Struct, gc=False):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


def _decode_dynamic(cls: type[DynamicObject], data: bytes | msgspec.Raw) -> DynamicObject:
    content = _TREE_DECODER.decode(data)
    if not isinstance(content, dict):
        raise msgspec.ValidationError(f"Expected `object`, got `{type(content).__name__}`")
    for name in ("apiVersion", "kind", "metadata"):
        content.pop(name, None)
    return cls(metadata=_decoder(_MetadataOnly)(data).metadata, content=content)


def _encode_dynamic(obj: DynamicObject, *, with_status: bool) -> bytes:
    content = obj.content if with_status else {k: v for k, v in obj.content.items() if k != "status"}
    return _ENCODER.encode({"apiVersion": obj.api_version, "kind": obj.kind, "metadata": obj.metadata, **content})


def _decode_without_nulls(cls: type[M], data: bytes | msgspec.Raw, first: msgspec.ValidationError) -> M:
    """Decode again without nulls: Go prints an empty list as null if the field is not optional.

    Rare, so the common path pays nothing: only an object that does not match its class is decoded again. If it still
    does not match, the first error is reported.
    """
    tree = decode_tree(data)
    try:
        obj: M = _decoder(cls)(_ENCODER.encode(_without_nulls(tree)))
        return obj
    except msgspec.ValidationError:
        raise DecodeError(f"{_subject(cls, tree)}: {_sentence(first)}") from first


def _decode_with_problems(cls: type[M], data: bytes | msgspec.Raw, first: DecodeError) -> M:
    tree = decode_tree(data)
    if not isinstance(tree, dict) or issubclass(cls, DynamicObject):
        raise first
    problems = Problems(_decode_strictly)
    obj = cast("M", problems.read_members(cls, tree, ""))
    if isinstance(obj, KubeObject):
        if any(problem.path.startswith("metadata") for problem in problems.found):
            raise first
        obj.__dict__[_PROBLEMS] = tuple(problems.found)
    return obj


def _decode_strictly(wanted: Any, value: Any) -> Any:
    try:
        decoder = _part_decoder(wanted)
    except TypeError:  # an annotation that cannot be hashed
        decoder = msgspec.json.Decoder(wanted, dec_hook=_decode_value)
    return decoder.decode(_ENCODER.encode(value))


@lru_cache(maxsize=4096)
def _part_decoder(wanted: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(wanted, dec_hook=_decode_value)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _subject(cls: type[Any], tree: Any) -> str:
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{cls.__name__} {name}" if name else cls.__name__


def _sentence(error: msgspec.ValidationError) -> str:
    what, _, path = str(error).partition(" - at `$")
    what = what[0].lower() + what[1:]
    return f"{path.rstrip('`').lstrip('.')}: {what}" if path else what


# Quantities do not change and few differ: sharing them makes a Pod a fifth cheaper to decode.
_shared_quantity = lru_cache(maxsize=4096)(Quantity)


def _decode_value(wanted: type[Any], value: Any) -> Any:  # hot
    if wanted is Quantity:
        if type(value) is str:
            return _shared_quantity(value)
        if type(value) is int or type(value) is float:
            return Quantity(value)
        raise ValueError(f"Expected a quantity, got `{type(value).__name__}`")
    if wanted is MicroTime:
        return MicroTime.parse(value)
    if wanted is Duration:
        return Duration.parse(value)
    raise NotImplementedError(f"no decoder for {wanted.__name__}")


def _encode_value(value: Any) -> Any:
    if isinstance(value, Quantity):
        return value.text
    if isinstance(value, UnknownValue):
        return value.value
    if isinstance(value, MicroTime):
        return format_micro_time(value)
    if isinstance(value, Duration):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be encoded as JSON")


_ENCODER = msgspec.json.Encoder(enc_hook=_encode_value)
_TREE_DECODER: DeepDecoder[Any] = DeepDecoder()
