"""Decodes a request body, JSON, YAML or protobuf, to a JSON tree. The verbs call it; it does not know the kinds.

It also reports duplicate fields, which strict field validation rejects and a fast JSON decoder does not notice, and
bounds the nesting before anything walks the tree. The size was bounded by `wire.http`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from kubewright._base.yaml import load
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.wire.go_json import json_type_name, replace_invalid_unicode, summarize_data, syntax_error
from kubewright.apiserver.wire.negotiation import JSON, PROTOBUF, YAML, media_type
from kubewright.apiserver.wire.protobuf import decode, decode_body
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.status_errors import StatusError, bad_request, unsupported_media_type
from kubewright.errors import DecodeError

__all__ = (
    "Json",
    "decode_json",
    "duplicate_fields",
    "field_paths",
    "go_yaml_error",
    "normalize_numbers",
    "not_an_object_error",
    "read_body",
    "read_object",
    "type_meta_error",
)

Json = Any

_decode: Final = msgspec.json.Decoder().decode
# Possessive quantifiers match each string whole, key or value: backtracking into strings would take quadratic time.
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"(\s*+:)?', re.DOTALL)
_FRACTION: Final = re.compile(rb"[-:,\[\s][0-9]+(?:\.[0-9]|[eE])")
_UNREADABLE: Final = "couldn't get version/kind; json parse error"
_UNREADABLE_YAML: Final = "yaml: "
_MAX_DEPTH: Final = 250
"""Levels of nesting: far more than any kind has, and few enough for code that walks a tree by recursion."""
_PLACE: Final = re.compile(r"line ([0-9]+), column [0-9]+: (.*)", re.DOTALL)


def decode_json(data: bytes) -> Json:
    """A JSON text; raises 400 with Go's syntax error for what is none."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, ValueError):  # the latter for bad Unicode, and for an integer without end
        return _decode_leniently(data)
    except RecursionError:
        raise _too_deep() from None


def _decode_leniently(data: bytes) -> Json:
    """Decode again with invalid Unicode replaced, as encoding/json does instead of failing."""
    try:
        return _decode(replace_invalid_unicode(data))
    except (msgspec.DecodeError, ValueError):
        raise bad_request(f"{_UNREADABLE}: {syntax_error(data)} ({summarize_data(data)})") from None


def _too_deep() -> StatusError:
    return bad_request(f"the body is nested more than {_MAX_DEPTH} levels deep, and this server reads no more")


def read_body(request: Request, *, kind: GroupVersionKind | None = None) -> tuple[Json, list[str]]:
    """The tree, and a strict decoding error for each duplicate field.

    `kind` is the default for a protobuf body whose envelope does not name one.
    """
    header = request.header("content-type")
    media = media_type(header) if header else JSON
    if media == JSON:
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
    """The tree with `1.0` as `1`: Go encodes a float64 without a fraction as an integer, so clients read back that."""
    return _whole(tree) if _FRACTION.search(data) else tree


def _whole(tree: Json) -> Json:
    if type(tree) is dict:
        return {name: _whole(value) for name, value in tree.items()}
    if type(tree) is list:
        return [_whole(item) for item in tree]
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
        return load(body, repeated=repeated, first=True), repeated
    except (ValueError, RecursionError) as exc:
        raise bad_request(f"{go_yaml_error(exc)} ({summarize_data(body)})") from None


def go_yaml_error(error: Exception) -> str:
    """A YAML syntax error in go-yaml's words: without the column, and with lines counted from 0."""
    found = _PLACE.fullmatch(str(error))
    if found is None:
        return f"yaml: {error}"
    line = int(found[1]) - ("did not find expected" in found[2])
    return f"yaml: line {line}: {found[2]}" if line else f"yaml: {found[2]}"


def duplicate_fields(body: bytes, tree: Json) -> list[str]:
    """Paths of the fields that a JSON text gives more than once in one object.

    The common case is cheap: count the keys in the text and in the tree, and only if the counts differ decode the
    text a second time, slowly, with every key kept.
    """
    if sum(map(bool, _STRING.findall(body))) == _count(tree, 1):
        return []
    found: list[str] = []
    pairs = json.loads(replace_invalid_unicode(body), object_pairs_hook=_Pairs)
    _repeated(pairs, "", found)
    return found


def field_paths(body: bytes) -> list[str]:
    """Paths of all fields of a JSON text in their order there; a duplicate field comes twice."""
    return list(_paths(json.loads(replace_invalid_unicode(body), object_pairs_hook=_Pairs), ""))


def _paths(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, _Pairs):
        for name, value in node:
            at = f"{path}.{name}" if path else name
            yield at
            yield from _paths(value, at)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _paths(value, f"{path}[{index}]")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its duplicate keys."""


def _count(tree: Json, depth: int) -> int:
    if depth > _MAX_DEPTH:
        raise _too_deep()
    if type(tree) is dict:
        total = len(tree)
        for value in tree.values():
            if type(value) is dict or type(value) is list:
                total += _count(value, depth + 1)
        return total
    if type(tree) is list:
        return sum(_count(item, depth + 1) for item in tree if type(item) is dict or type(item) is list)
    return 0


def _repeated(node: Any, path: str, found: list[str]) -> None:
    if isinstance(node, _Pairs):
        seen: set[str] = set()
        for name, value in node:
            at = f"{path}.{name}" if path else name
            if name in seen and at not in found:
                found.append(at)
            seen.add(name)
            _repeated(value, at, found)
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for index, value in enumerate(node):
            _repeated(value, f"{path}[{index}]", found)
