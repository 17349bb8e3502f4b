"""JSON patches: apply and make merge patches (RFC 7386) and JSON patches (RFC 6902).

Trees are what a JSON decoder returns: dicts, lists and scalars. Nothing here changes its arguments; results share the
unchanged parts. Webhooks answer with JSON patches made here; `api.diff` makes the smallest merge patch between two
trees. JSON patches are applied here strictly by the RFC, to check what `make_json_patch` made;
`kubewright.apiserver.verbs.patches.json_patch` applies them as kube-apiserver does, whose library (evanphx/json-patch)
deviates from the RFC, so neither can replace the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from kubewright.errors import DecodeError

__all__ = ("Json", "apply_json_patch", "apply_merge_patch", "json_equal", "make_json_patch")

Json: TypeAlias = Any
"""A JSON tree: dict with string keys, list, str, int, float, bool or None."""

Operation: TypeAlias = dict[str, Any]

_encode: Final = msgspec.json.Encoder().encode
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,17}")


def json_equal(one: Json, two: Json) -> bool:  # hot
    """Whether two trees are the same JSON: 1 equals 1.0, but true does not equal 1, as it does for Python's ==."""
    if one is two:
        return True
    if one != two:
        return False
    kind = type(one)
    if kind is str:
        return True
    if kind is not dict and kind is not list:
        return (kind is bool) == (type(two) is bool)
    # Equal for Python, except that true may face 1 somewhere inside. Equal bytes rule that out at a third of the cost
    # of a walk; different bytes may differ only in the order of names, so then the walk decides.
    try:
        return _encode(one) == _encode(two) or _same_types(one, two)
    except (TypeError, ValueError, OverflowError):  # it cannot be encoded: a huge number, half a surrogate pair
        return _same_types(one, two)


def _same_types(one: Json, two: Json) -> bool:
    """For two trees that are equal to Python: whether booleans face booleans everywhere."""
    if type(one) is dict:
        return all(_same_types(value, two[name]) for name, value in one.items())
    if type(one) is list:
        return all(map(_same_types, one, two))
    return (type(one) is bool) == (type(two) is bool)


def apply_merge_patch(target: Json, patch: Json) -> Json:
    """The target after the merge patch: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            merged[name] = apply_merge_patch(merged.get(name), value)
        else:
            merged[name] = value
    return merged


def apply_json_patch(target: Json, operations: Iterable[Mapping[str, Any]]) -> Json:
    """The target after all operations, or a DecodeError that names the first one that fails.

    All or nothing: the target itself does not change.
    """
    document = _copy(target)
    for index, operation in enumerate(operations):
        if not isinstance(operation, Mapping):
            raise DecodeError(f"JSON patch operation {index} is not an object; give op, path and value")
        try:
            document = _apply(document, operation)
        except _PatchError as exc:
            name, path = operation.get("op"), operation.get("path")
            raise DecodeError(f"JSON patch operation {index} ({name} {path!r}): {exc}") from None
    return document


def make_json_patch(before: Json, after: Json) -> list[Operation]:
    """Operations that turn one tree into the other; none if they are equal.

    Objects are compared by name. In lists, equal items at both ends are skipped, so that one item more or less is one
    operation.
    """
    operations: list[Operation] = []
    _compare(before, after, "", operations)
    return operations


class _PatchError(Exception):
    """An operation cannot be applied to the document; the text says why."""


def _copy(tree: Json) -> Json:
    if isinstance(tree, dict):
        return {name: _copy(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_copy(item) for item in tree]
    return tree


def _apply(document: Json, operation: Mapping[str, Any]) -> Json:
    name = operation.get("op")
    path = _pointer(operation, "path")
    if name == "remove":
        return _remove(document, path)[0]
    if name in ("move", "copy"):
        return _relocate(document, _pointer(operation, "from"), path, keep=name == "copy")
    if name not in ("add", "replace", "test"):
        raise _PatchError("unknown operation; use one of add, remove, replace, move, copy and test")
    if "value" not in operation:
        raise _PatchError("the value is missing")
    value = operation["value"]
    if name == "add":
        return _add(document, path, _copy(value))
    if name == "replace":
        return _replace(document, path, _copy(value))
    if not json_equal(_find(document, path), value):
        raise _PatchError("the test failed: the document has another value there")
    return document


def _pointer(operation: Mapping[str, Any], member: str) -> list[str]:
    text = operation.get(member)
    if not isinstance(text, str):
        raise _PatchError(f"the member {member!r} is missing or no string")
    if text and text[0] != "/":
        raise _PatchError(f"{member} {text!r} is no JSON pointer; it must be empty or start with a slash")
    if re.search(r"~(?![01])", text):
        raise _PatchError(f"{member} {text!r} is no JSON pointer; write ~ as ~0 and / as ~1")
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def _position(items: list[Json], step: str, *, end: int) -> int:
    """The index that a step of a pointer means, at most `end`."""
    if _INDEX.fullmatch(step) is None:
        raise _PatchError(f"{step!r} is no index of a list")
    if int(step) > end:
        raise _PatchError(f"index {step} is out of range; the list has {len(items)} items")
    return int(step)


def _child(node: Json, step: str) -> Json:
    if isinstance(node, dict):
        if step not in node:
            raise _PatchError(f"there is no {step!r}")
        return node[step]
    if isinstance(node, list):
        return node[_position(node, step, end=len(node) - 1)]
    raise _PatchError(f"there is no {step!r} inside a {_name_of(node)}")


def _name_of(node: Json) -> str:
    return "null" if node is None else {str: "string", bool: "boolean"}.get(type(node), "number")


def _find(document: Json, path: list[str]) -> Json:
    for step in path:
        document = _child(document, step)
    return document


def _add(document: Json, path: list[str], value: Json) -> Json:
    if not path:
        return value
    parent, last = _find(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        at = len(parent) if last == "-" else _position(parent, last, end=len(parent))
        parent.insert(at, value)
    elif isinstance(parent, dict):
        parent[last] = value
    else:
        raise _PatchError(f"{last!r} cannot be added to a {_name_of(parent)}")
    return document


def _remove(document: Json, path: list[str]) -> tuple[Json, Json]:
    """The document without the value, and the value."""
    if not path:
        return None, document
    parent, last = _find(document, path[:-1]), path[-1]
    value = _child(parent, last)
    del parent[int(last) if isinstance(parent, list) else last]
    return document, value


def _replace(document: Json, path: list[str], value: Json) -> Json:
    if not path:
        return value
    parent, last = _find(document, path[:-1]), path[-1]
    _child(parent, last)
    parent[int(last) if isinstance(parent, list) else last] = value
    return document


def _relocate(document: Json, source: list[str], path: list[str], *, keep: bool) -> Json:
    if keep:
        return _add(document, path, _copy(_find(document, source)))
    if source == path:
        _find(document, source)
        return document
    if path[: len(source)] == source:
        raise _PatchError("a value cannot be moved into itself")
    rest, value = _remove(document, source)
    return _add(rest, path, value)


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def _compare(before: Json, after: Json, path: str, operations: list[Operation]) -> None:
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        _compare_objects(before, after, path, operations)
    elif isinstance(before, list) and isinstance(after, list):
        _compare_lists(before, after, path, operations)
    elif not json_equal(before, after):
        operations.append({"op": "replace", "path": path, "value": after})


def _compare_objects(before: dict[str, Json], after: dict[str, Json], path: str, operations: list[Operation]) -> None:
    for name, old in before.items():
        at = f"{path}/{_escape(name)}"
        if name in after:
            _compare(old, after[name], at, operations)
        else:
            operations.append({"op": "remove", "path": at})
    for name, new in after.items():
        if name not in before:
            operations.append({"op": "add", "path": f"{path}/{_escape(name)}", "value": new})


def _compare_lists(before: list[Json], after: list[Json], path: str, operations: list[Operation]) -> None:
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and json_equal(before[start], after[start]):
        start += 1
    tail = 0
    while tail < shorter - start and json_equal(before[-1 - tail], after[-1 - tail]):
        tail += 1
    old_end, new_end = len(before) - tail, len(after) - tail
    paired = min(old_end, new_end)
    for index in range(start, paired):
        _compare(before[index], after[index], f"{path}/{index}", operations)
    # Backwards, so that removing an item does not move those still to be removed.
    operations.extend({"op": "remove", "path": f"{path}/{index}"} for index in reversed(range(paired, old_end)))
    operations.extend(
        {"op": "add", "path": f"{path}/{index}", "value": after[index]} for index in range(paired, new_end)
    )
