"""JSON patches as kube-apiserver applies them, which is not quite what the standard says.

A `replace` may name a member that is not there, a missing `value` is null, indices may count from the end. Clients and
webhooks rely on it. What does not fit is said in the real server's words: `PatchMisfit`. The target is never changed.
`api.patches` is the standard, for whoever makes patches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, final

from kubewright.api.patches import json_equal

__all__ = ("PatchMisfit", "apply_operations")

_MISSING: Final = "missing value"
_NOT_AN_INDEX: Final = 'strconv.Atoi: parsing "{0}": invalid syntax'


@final
class PatchMisfit(Exception):
    """An operation does not fit the document."""


def apply_operations(target: Any, operations: Iterable[Mapping[str, Any]]) -> Any:
    """The target after all operations; all or nothing."""
    document = [_copied(target)]  # one item: an operation on the root replaces it
    for operation in operations:
        kind = operation.get("op")
        apply = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if apply is None:
            raise PatchMisfit(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        apply(document, operation)
    return document[0]


def _copied(tree: Any) -> Any:
    if type(tree) is dict:
        return {name: _copied(value) for name, value in tree.items()}
    if type(tree) is list:
        return [_copied(item) for item in tree]
    return tree


def _member(operation: Mapping[str, Any], name: str, otherwise: str) -> str:
    text = operation.get(name)
    if not isinstance(text, str):
        raise PatchMisfit(f"{otherwise}: {_MISSING}")
    return text


def _find(document: list[Any], path: str) -> tuple[Any, str]:
    """What holds the value a path leads to, and its name there; None when the way ends before."""
    _, *steps = path.split("/")
    if not steps:
        return None, ""
    node = document[0]
    for step in steps[:-1]:
        try:
            node = _get(node, _decoded(step))
        except PatchMisfit:
            return None, ""
        if not isinstance(node, dict | list):
            return None, ""
    return node, _decoded(steps[-1])


def _decoded(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _index(text: str, size: int) -> int:
    try:
        number = int(text) if text.lstrip("+-").isdigit() else None
    except ValueError:
        number = None
    if number is None:
        raise PatchMisfit(_NOT_AN_INDEX.format(text))
    if number >= size or number < -size:
        raise PatchMisfit(f"Unable to access invalid index: {number}: invalid index referenced")
    return number + size if number < 0 else number


def _get(node: Any, key: str) -> Any:
    return node[_index(key, len(node))] if isinstance(node, list) else node.get(key)


def _put(node: Any, key: str, value: Any) -> None:
    """Add: a new item of a list, or a member whether it was there or not."""
    if not isinstance(node, list):
        node[key] = value
    elif key == "-":
        node.append(value)
    else:
        try:
            place = _index(key, len(node) + 1)
        except PatchMisfit as misfit:
            if "Atoi" in str(misfit):
                raise PatchMisfit(f"value was not a proper array index: '{key}': {misfit}") from None
            raise
        node.insert(place, value)


def _take(node: Any, key: str) -> None:
    if isinstance(node, list):
        del node[_index(key, len(node))]
    elif key in node:
        del node[key]
    else:
        raise PatchMisfit(f"Unable to remove nonexistent key: {key}: {_MISSING}")


def _add(document: list[Any], operation: Mapping[str, Any]) -> None:
    path = _member(operation, "path", "add operation failed to decode path")
    node, key = _find(document, path)
    if node is None:
        raise PatchMisfit(f'add operation does not apply: doc is missing path: "{path}": {_MISSING}')
    with _said(f"error in add for path: '{path}'"):
        _put(node, key, _copied(operation.get("value")))


def _remove(document: list[Any], operation: Mapping[str, Any]) -> None:
    path = _member(operation, "path", "remove operation failed to decode path")
    node, key = _find(document, path)
    if node is None:
        raise PatchMisfit(f'remove operation does not apply: doc is missing path: "{path}": {_MISSING}')
    with _said(f"error in remove for path: '{path}'"):
        _take(node, key)


def _replace(document: list[Any], operation: Mapping[str, Any]) -> None:
    path = _member(operation, "path", "replace operation failed to decode path: operation missing path field")
    value = _copied(operation.get("value"))
    if not path:
        document[0] = value
        return
    node, key = _find(document, path)
    if node is None:
        raise PatchMisfit(f"replace operation does not apply: doc is missing path: {path}: {_MISSING}")
    if isinstance(node, list):
        try:
            node[_index(key, len(node))] = value
        except PatchMisfit:
            message = f"replace operation does not apply: doc is missing key: {path}: {_MISSING}"
            raise PatchMisfit(message) from None
    else:
        node[key] = value


def _move(document: list[Any], operation: Mapping[str, Any]) -> None:
    start = _member(operation, "from", "move operation failed to decode from: operation, missing from field")
    node, key = _find(document, start)
    if node is None:
        raise PatchMisfit(f"move operation does not apply: doc is missing from path: {start}: {_MISSING}")
    with _said(f"error in move for path: '{key}'"):
        value = _get(node, key)
        _take(node, key)
    path = _member(operation, "path", "move operation failed to decode path: operation missing path field")
    node, key = _find(document, path)
    if node is None:
        raise PatchMisfit(f"move operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    with _said(f"error in move for path: '{path}'"):
        _put(node, key, value)


def _copy(document: list[Any], operation: Mapping[str, Any]) -> None:
    start = _member(operation, "from", "copy operation failed to decode from: operation, missing from field")
    node, key = _find(document, start)
    if node is None:
        raise PatchMisfit(f"copy operation does not apply: doc is missing from path: {start}: {_MISSING}")
    with _said(f"error in copy for from: '{start}'"):
        value = _get(node, key)
    path = _member(operation, "path", "copy operation failed to decode path: operation missing path field")
    node, key = _find(document, path)
    if node is None:
        raise PatchMisfit(f"copy operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    with _said("error while adding value during copy"):
        _put(node, key, _copied(value))


def _test(document: list[Any], operation: Mapping[str, Any]) -> None:
    path = _member(operation, "path", "test operation failed to decode path: operation missing path field")
    value = document[0]
    if path:
        node, key = _find(document, path)
        if node is None:
            raise PatchMisfit(f"test operation does not apply: is missing path: {path}: {_MISSING}")
        with _said(f"error in test for path: '{path}'"):
            value = _get(node, key)
    if not json_equal(value, operation.get("value")):
        raise PatchMisfit(f"testing value {path} failed: test failed")


_OPERATIONS: Final = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


@final
class _said:  # noqa: N801 - reads as a statement
    """Puts what was being done before what went wrong."""

    __slots__ = ("_doing",)

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, PatchMisfit):
            raise PatchMisfit(f"{self._doing}: {error}") from None
