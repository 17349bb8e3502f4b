"""JSON patches as kube-apiserver applies them, with the library evanphx/json-patch.

It differs from RFC 6902: `replace` may name a member that is not there, a missing `value` is null, and indices may
count from the end. Clients and webhooks rely on that, and on its error messages. The target is never changed.
`api.patches` follows the RFC and is for clients. What `copy` copies is bounded: each may double the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, final

from kubewright.api.codec import encode_tree
from kubewright.api.patches import json_equal

__all__ = ("JsonPatchError", "apply_json_patch")

_MAX_COPIED: Final = 3 * 1024 * 1024
"""Bytes that all `copy` operations may add together (`JSONPatchMaxCopyBytes` in k8s.io/apiserver/pkg/server/config.go).
"""
_VALUE: Final = 20
"""Bytes that a value counts for at least: an empty object takes two in JSON and many more in memory."""
_MISSING: Final = "missing value"
_NOT_AN_INDEX: Final = 'strconv.Atoi: parsing "{0}": invalid syntax'


@final
class JsonPatchError(Exception):
    """An operation cannot be applied to the document; the message is that of evanphx/json-patch."""


@final
class _Document(list[Any]):
    """The document as its only item, since an operation on the root replaces it; and how much may still be copied."""

    __slots__ = ("left",)

    def __init__(self, root: Any) -> None:
        super().__init__((root,))
        self.left = _MAX_COPIED

    def charge(self, value: Any) -> None:
        """Refuse to copy too much."""
        self.left -= max(len(encode_tree(value)), _VALUE * _count(value, self.left // _VALUE))
        if self.left < 0:
            done = _MAX_COPIED - self.left
            raise JsonPatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {done},"
                f" exceeding the limit {_MAX_COPIED}"
            )


def apply_json_patch(target: Any, operations: Iterable[Any]) -> Any:
    """A copy of the target with all operations applied."""
    document = _Document(_deep_copy(target))
    for operation in operations:
        kind = operation.get("op") if isinstance(operation, Mapping) else None
        apply = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if apply is None:
            raise JsonPatchError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        apply(document, operation)
    return document[0]


def _count(value: Any, limit: int) -> int:
    """How many values a tree has; above the limit it does not matter how many."""
    total, nodes = 0, [value]
    while nodes and total <= limit:
        node = nodes.pop()
        if isinstance(node, dict | list):
            total += len(node)
            nodes.extend(node.values() if isinstance(node, dict) else node)
    return total


def _deep_copy(tree: Any) -> Any:
    if type(tree) is dict:
        return {name: _deep_copy(value) for name, value in tree.items()}
    if type(tree) is list:
        return [_deep_copy(item) for item in tree]
    return tree


def _member(operation: Mapping[str, Any], name: str, otherwise: str) -> str:
    text = operation.get(name)
    if not isinstance(text, str):
        raise JsonPatchError(f"{otherwise}: {_MISSING}")
    return text


def _find(document: _Document, path: str) -> tuple[Any, str]:
    """The container of the value at a path, and the key of the value in it; None if the path does not exist."""
    _, *steps = path.split("/")
    if not steps:
        return None, ""
    node = document[0]
    for step in steps[:-1]:
        try:
            node = _get(node, _unescape(step))
        except JsonPatchError:
            return None, ""
        if not isinstance(node, dict | list):
            return None, ""
    if not isinstance(node, dict | list):  # another operation has replaced the whole document
        return None, ""
    return node, _unescape(steps[-1])


def _unescape(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _index(text: str, size: int) -> int:
    try:
        number = int(text) if text.lstrip("+-").isdigit() else None
    except ValueError:
        number = None
    if number is None:
        raise JsonPatchError(_NOT_AN_INDEX.format(text))
    if number >= size or number < -size:
        raise JsonPatchError(f"Unable to access invalid index: {number}: invalid index referenced")
    return number + size if number < 0 else number


def _get(node: Any, key: str) -> Any:
    return node[_index(key, len(node))] if isinstance(node, list) else node.get(key)


def _put(node: Any, key: str, value: Any) -> None:
    """Insert an item into a list, or set a member of an object."""
    if not isinstance(node, list):
        node[key] = value
    elif key == "-":
        node.append(value)
    else:
        try:
            place = _index(key, len(node) + 1)
        except JsonPatchError as error:
            if "Atoi" in str(error):
                raise JsonPatchError(f"value was not a proper array index: '{key}': {error}") from None
            raise
        node.insert(place, value)


def _take(node: Any, key: str) -> None:
    if isinstance(node, list):
        del node[_index(key, len(node))]
    elif key in node:
        del node[key]
    else:
        raise JsonPatchError(f"Unable to remove nonexistent key: {key}: {_MISSING}")


def _add(document: _Document, operation: Mapping[str, Any]) -> None:
    path = _member(operation, "path", "add operation failed to decode path")
    node, key = _find(document, path)
    if node is None:
        raise JsonPatchError(f'add operation does not apply: doc is missing path: "{path}": {_MISSING}')
    with _Context(f"error in add for path: '{path}'"):
        _put(node, key, _deep_copy(operation.get("value")))


def _remove(document: _Document, operation: Mapping[str, Any]) -> None:
    path = _member(operation, "path", "remove operation failed to decode path")
    node, key = _find(document, path)
    if node is None:
        raise JsonPatchError(f'remove operation does not apply: doc is missing path: "{path}": {_MISSING}')
    with _Context(f"error in remove for path: '{path}'"):
        _take(node, key)


def _replace(document: _Document, operation: Mapping[str, Any]) -> None:
    path = _member(operation, "path", "replace operation failed to decode path: operation missing path field")
    value = _deep_copy(operation.get("value"))
    if not path:
        document[0] = value
        return
    node, key = _find(document, path)
    if node is None:
        raise JsonPatchError(f"replace operation does not apply: doc is missing path: {path}: {_MISSING}")
    if isinstance(node, list):
        try:
            node[_index(key, len(node))] = value
        except JsonPatchError:
            message = f"replace operation does not apply: doc is missing key: {path}: {_MISSING}"
            raise JsonPatchError(message) from None
    else:
        node[key] = value


def _move(document: _Document, operation: Mapping[str, Any]) -> None:
    start = _member(operation, "from", "move operation failed to decode from: operation, missing from field")
    node, key = _find(document, start)
    if node is None:
        raise JsonPatchError(f"move operation does not apply: doc is missing from path: {start}: {_MISSING}")
    with _Context(f"error in move for path: '{key}'"):
        value = _get(node, key)
        _take(node, key)
    path = _member(operation, "path", "move operation failed to decode path: operation missing path field")
    node, key = _find(document, path)
    if node is None:
        raise JsonPatchError(f"move operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    with _Context(f"error in move for path: '{path}'"):
        _put(node, key, value)


def _copy(document: _Document, operation: Mapping[str, Any]) -> None:
    start = _member(operation, "from", "copy operation failed to decode from: operation, missing from field")
    node, key = _find(document, start)
    if node is None:
        raise JsonPatchError(f"copy operation does not apply: doc is missing from path: {start}: {_MISSING}")
    with _Context(f"error in copy for from: '{start}'"):
        value = _get(node, key)
    path = _member(operation, "path", "copy operation failed to decode path: operation missing path field")
    node, key = _find(document, path)
    if node is None:
        raise JsonPatchError(f"copy operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    document.charge(value)
    with _Context("error while adding value during copy"):
        _put(node, key, _deep_copy(value))


def _test(document: _Document, operation: Mapping[str, Any]) -> None:
    path = _member(operation, "path", "test operation failed to decode path: operation missing path field")
    value = document[0]
    if path:
        node, key = _find(document, path)
        if node is None:
            raise JsonPatchError(f"test operation does not apply: is missing path: {path}: {_MISSING}")
        with _Context(f"error in test for path: '{path}'"):
            value = _get(node, key)
    if not json_equal(value, operation.get("value")):
        raise JsonPatchError(f"testing value {path} failed: test failed")


_OPERATIONS: Final = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


@final
class _Context:
    """Puts what the operation was doing in front of its error message."""

    __slots__ = ("_doing",)

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, JsonPatchError):
            raise JsonPatchError(f"{self._doing}: {error}") from None
