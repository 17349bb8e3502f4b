"""Fields that a JSON text gives more than once, which strict field validation rejects and a JSON decoder does not see.

It also bounds the nesting, before anything walks the tree by recursion. `decoding`, the patches and
`verbs.decode_errors` call it. The text is not trusted: a path may be as long as the body, so paths are written only for
what is reported, and that is limited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from zlib import crc32

from kubewright.apiserver.wire.go_json import replace_invalid_unicode
from kubewright.apiserver.wire.status_errors import StatusError, bad_request
from kubewright.schema.check.reported_paths import ReportedPaths, path_text

__all__ = ("MAX_STRICT_ERRORS", "check_depth", "duplicate_fields", "in_text_order", "nested_too_deep")

MAX_STRICT_ERRORS: Final = 100
"""How many errors about unknown and duplicate fields a response has (`saveStrictError` of sigs.k8s.io/json)."""
_MAX_DEPTH: Final = 250
"""Levels of nesting: far more than any kind has, and few enough for code that walks a tree by recursion."""
# Possessive quantifiers match each string whole, key or value: backtracking into strings would take quadratic time.
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"(\s*+:)?', re.DOTALL)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its duplicate keys."""

    __slots__ = ()


def nested_too_deep() -> StatusError:
    """400: the body is nested too deep."""
    return bad_request(f"the body is nested more than {_MAX_DEPTH} levels deep, and this server reads no more")


def check_depth(tree: Any) -> None:
    """Refuse a tree that is nested too deep."""
    _count(tree, 1)


def duplicate_fields(body: bytes, tree: Any) -> list[str]:
    """Paths of the fields that a JSON text gives more than once in one object; `tree` is the text, decoded.

    The common case is cheap: count the keys in the text and in the tree, and only if the counts differ decode the
    text a second time, slowly, with every key kept.
    """
    if sum(map(bool, _STRING.findall(body))) == _count(tree, 1):
        return []
    found = ReportedPaths(limit=MAX_STRICT_ERRORS)
    for steps in _repeated(_pairs(body), [], 1):
        found.add(steps)
        if found.is_full:
            break
    return found.paths()


def in_text_order(body: bytes, duplicates: Iterable[str], unknowns: Iterable[str]) -> list[str]:
    """Messages about fields, `duplicate field "a.b"` and `unknown field "a"`, in the order of the fields in a text."""
    left = {text.partition('"')[2][:-1]: text for text in unknowns}
    repeated = {text.partition('"')[2][:-1]: text for text in duplicates}
    sums = {crc32(path.encode(errors="replace")) for path in (*left, *repeated)}
    seen: set[str] = set()
    ordered: list[str] = []
    for steps in _wanted(_pairs(body), [], 0, sums):
        path = path_text(steps)
        text = repeated.pop(path, None) if path in seen else left.pop(path, None)
        seen.add(path)
        if text is not None:
            ordered.append(text)
    return ordered


def _pairs(body: bytes) -> list[Any]:
    """The text decoded with all members of its objects; a scalar has none."""
    try:
        tree = json.loads(replace_invalid_unicode(body), object_pairs_hook=_Pairs)
    except RecursionError:
        raise nested_too_deep() from None
    return tree if isinstance(tree, list) else []


def _count(tree: Any, depth: int) -> int:
    """The number of the members of all objects."""
    if depth > _MAX_DEPTH:
        raise nested_too_deep()
    if type(tree) is dict:
        total = len(tree)
        for value in tree.values():
            if type(value) is dict or type(value) is list:
                total += _count(value, depth + 1)
        return total
    if type(tree) is list:
        return sum(_count(item, depth + 1) for item in tree if type(item) is dict or type(item) is list)
    return 0


def _repeated(node: list[Any], steps: list[str | int], depth: int) -> Iterator[list[str | int]]:
    """The path of each member that its object has already, once for each name."""
    if depth > _MAX_DEPTH:
        raise nested_too_deep()
    named: dict[str, int] = {}
    for step, value in node if isinstance(node, _Pairs) else enumerate(node):
        steps.append(step)
        if isinstance(step, str):
            times = named[step] = named.get(step, 0) + 1
            if times == 2:
                yield steps
        if isinstance(value, list) and value:
            yield from _repeated(value, steps, depth + 1)
        steps.pop()


def _wanted(node: list[Any], steps: list[str | int], checksum: int, sums: set[int]) -> Iterator[list[str | int]]:
    """The paths of all members whose checksum is one of `sums`.

    The checksum of a path follows from that of its beginning, so that no path is written to be compared.
    """
    for step, value in node if isinstance(node, _Pairs) else enumerate(node):
        steps.append(step)
        text = f"[{step}]" if isinstance(step, int) else step if len(steps) == 1 else f".{step}"
        at = crc32(text.encode(errors="replace"), checksum)
        if isinstance(step, str) and at in sums:
            yield steps
        if isinstance(value, list) and value:
            yield from _wanted(value, steps, at, sums)
        steps.pop()
