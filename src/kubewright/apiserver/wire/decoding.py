"""Decodes a request body, JSON, YAML or protobuf, to a JSON tree. The verbs call it; it does not know the kinds.

`duplicates` finds the fields that a text gives twice and bounds the nesting, `value_limits` bounds the number of
values; `wire.http` has bounded the bytes.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final

import msgspec

from kubewright._base.yaml import TooManyValuesError, load
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.wire.duplicates import check_depth, duplicate_fields, nested_too_deep
from kubewright.apiserver.wire.go_json import json_type_name, replace_invalid_unicode, summarize_data, syntax_error
from kubewright.apiserver.wire.negotiation import JSON, PROTOBUF, YAML, media_type
from kubewright.apiserver.wire.protobuf import decode, decode_body
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.status_errors import StatusError, bad_request, unsupported_media_type
from kubewright.apiserver.wire.value_limits import MAX_VALUES, check_json_values, too_many_values
from kubewright.errors import DecodeError

__all__ = (
    "Json",
    "decode_json",
    "decode_json_body",
    "go_yaml_error",
    "normalize_numbers",
    "not_an_object_error",
    "read_body",
    "read_object",
    "type_meta_error",
)

Json = Any

# Python's float reads "1e308" fifty times faster than msgspec, which holds up everybody while it does.
_decode: Final = msgspec.json.Decoder(float_hook=float).decode
_ODD_NUMBER: Final = re.compile(rb"[-:,\[\s](?:[0-9]{20}|[0-9]+(?:\.[0-9]|[eE]))")
_IDENTITY: Final = ("name", "namespace", "uid", "resourceVersion")
_LARGEST: Final = sys.float_info.max
_UNREADABLE: Final = "couldn't get version/kind; json parse error"
_UNREADABLE_YAML: Final = "yaml: "
_PLACE: Final = re.compile(r"line ([0-9]+), column [0-9]+: (.*)", re.DOTALL)


def decode_json(data: bytes) -> Json:
    """A JSON text; raises 400 with Go's syntax error for what is none."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, ValueError):  # the latter for bad Unicode, and for an integer without end
        return _decode_leniently(data)
    except RecursionError:
        raise nested_too_deep() from None


def decode_json_body(body: bytes) -> Json:
    """As `decode_json`, for a body: with a bounded number of values, and not nested too deep."""
    check_json_values(body)
    tree = decode_json(body)
    check_depth(tree)
    return tree


def _decode_leniently(data: bytes) -> Json:
    """Decode again with invalid Unicode replaced, as encoding/json does instead of failing."""
    try:
        return _decode(replace_invalid_unicode(data))
    except (msgspec.DecodeError, ValueError):
        raise bad_request(f"{_UNREADABLE}: {syntax_error(data)} ({summarize_data(data)})") from None


def read_body(request: Request, *, kind: GroupVersionKind | None = None) -> tuple[Json, list[str]]:
    """The tree, and a strict decoding error for each duplicate field.

    `kind` is the default for a protobuf body whose envelope does not name one.
    """
    header = request.header("content-type")
    media = media_type(header) if header else JSON
    if media == JSON:
        check_json_values(request.body)
        tree = decode_json(request.body)
        repeated = [f'duplicate field "{path}"' for path in duplicate_fields(request.body, tree)]
        return normalize_numbers(request.body, tree), repeated
    if media == YAML:
        return _from_yaml(request.body)
    if media == PROTOBUF:
        if kind is not None:
            return decode_body(request.body, kind=kind), []
        try:
            return decode(request.body), []
        except DecodeError as exc:
            raise bad_request(str(exc)) from None
    raise unsupported_media_type((JSON, YAML, PROTOBUF))


def normalize_numbers(data: bytes, tree: Json) -> Json:
    """The tree with `1.0` as `1`: Go encodes a float64 without a fraction as an integer, so clients read back that.

    Raises 400 for an integer that is no float64 either.
    """
    return _whole(tree) if _ODD_NUMBER.search(data) else tree


def _whole(tree: Json) -> Json:
    if type(tree) is dict:
        return {name: _whole(value) for name, value in tree.items()}
    if type(tree) is list:
        return [_whole(item) for item in tree]
    if type(tree) is int and not -_LARGEST <= tree <= _LARGEST:
        raise bad_request("json: cannot unmarshal number into Go value of type float64")
    return int(tree) if type(tree) is float and tree.is_integer() and abs(tree) < 1e15 else tree


def read_object(request: Request, *, kind: GroupVersionKind | None = None) -> tuple[dict[str, Json], list[str]]:
    """As `read_body`, for a body that must be an object, of that kind if one is named."""
    name = kind.kind if kind is not None else ""
    try:
        tree, repeated = read_body(request, kind=kind)
    except StatusError as exc:
        if exc.code == 400 and str(exc).startswith((_UNREADABLE, _UNREADABLE_YAML)):
            raise _unrecognized(name, str(exc)) from None
        raise
    if tree is None:
        return {}, repeated
    if not isinstance(tree, dict):
        why = f"{not_an_object_error(tree)} ({summarize_data(request.body)})"
        raise _unrecognized(name, why)
    if wrong := type_meta_error(tree):
        raise _unrecognized(name, f"{wrong} ({summarize_data(request.body)})")
    if isinstance(meta := tree.get("metadata"), dict):
        request.metadata = {part: meta[part] for part in _IDENTITY if isinstance(meta.get(part), str)}
    return tree, repeated


def type_meta_error(tree: dict[str, Json]) -> str:
    """Why apiVersion and kind cannot be decoded; empty if they can."""
    for field, value in tree.items():
        if field in ("apiVersion", "kind") and value is not None and not isinstance(value, str):
            found = f"json: cannot unmarshal {json_type_name(value)} into Go struct field .{field} of type string"
            return f"{_UNREADABLE}: {found}"
    version = tree.get("apiVersion") or ""
    return f"unexpected GroupVersion string: {version}" if version.count("/") > 1 else ""


def not_an_object_error(tree: Json) -> str:
    """Go's error for a body that is JSON but not an object."""
    return (
        f"{_UNREADABLE}: json: cannot unmarshal {json_type_name(tree)} into Go value of"
        ' type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string'
        ' "json:\\"kind,omitempty\\"" }'
    )


def _unrecognized(kind: str, why: str) -> StatusError:
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {why}")


def _from_yaml(body: bytes) -> tuple[Json, list[str]]:
    repeated: list[str] = []
    try:
        return load(body, repeated=repeated, first=True, max_values=MAX_VALUES), repeated
    except TooManyValuesError:
        raise too_many_values() from None
    except (ValueError, RecursionError) as exc:
        raise bad_request(f"{go_yaml_error(exc)} ({summarize_data(body)})") from None


def go_yaml_error(error: Exception) -> str:
    """A YAML syntax error in go-yaml's words: without the column, and with lines counted from 0."""
    found = _PLACE.fullmatch(str(error))
    if found is None:
        return f"yaml: {error}"
    if found[2].endswith("is not allowed in YAML"):
        return "yaml: control characters are not allowed"
    line = int(found[1]) - ("did not find expected" in found[2])
    return f"yaml: line {line}: {found[2]}" if line else f"yaml: {found[2]}"
