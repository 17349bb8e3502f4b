"""The changes made to an object since it was read, and the object with these changes as JSON for the server.

This is why a write never drops a field the class does not know. An object that was read keeps its bytes (`codec.read`).
Three trees are compared: what the server sent, what the class decoded of it, and the object now. The difference
between the last two is applied to the first, so that every unknown field stays, also inside the items of lists. The
client and the controllers' Context call this; no I/O.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import msgspec

from kubewright._base.deep_json import DeepDecoder
from kubewright.api.codec import decode_stored, decode_tree, encode, origin_of, to_tree
from kubewright.api.diff import merge_patch, overlay
from kubewright.api.model import Model
from kubewright.api.resource import KubeObject
from kubewright.errors import ConfigError

__all__ = ("merge_patch_between", "merge_patch_since_read", "status_patch_since_read", "whole_tree")

Tree = dict[str, Any]


def whole_tree(obj: KubeObject) -> Tree:
    """The object with every field it had when read, known to its class or not, and the changes made since."""
    origin = origin_of(obj)
    if origin is None:
        return to_tree(obj)
    return _with_changes(obj, origin, decode_tree(origin))


def merge_patch_since_read(obj: KubeObject) -> Tree:
    """The smallest merge patch from the object as it was read to the object now."""
    origin = _require_origin(obj)
    sent = decode_tree(origin)
    # `_with_changes` shares every unchanged part with `sent`, so merge_patch skips it by identity.
    return cast("Tree", merge_patch(sent, _with_changes(obj, origin, sent)))


def status_patch_since_read(obj: KubeObject) -> Tree:  # hot
    """The part of `merge_patch_since_read` about the status; empty if the status did not change.

    A patch that is not empty also has the class's defaults for fields that the server does not have: a status with
    `ready: 0` has it from its first write on, and fields that the schema requires are there.
    """
    status = getattr(obj, "status", None)
    if not isinstance(status, Model):  # free-form data, without defaults
        changes = merge_patch_since_read(obj).get("status")
        return {} if changes is None else {"status": changes}
    # The rest of the object, mostly the larger part, is skipped and not decoded.
    sent = _STATUS_DECODER.decode(_require_origin(obj)).status
    stored = decode_tree(sent)
    decoded = _default_status(type(obj)) if stored is None else encode(decode_stored(type(status), sent))
    now = encode(status)
    if decoded == now:
        return {}
    tree, stored = decode_tree(now), stored or {}
    changes = merge_patch(stored, overlay(stored, decode_tree(decoded), tree))
    return {"status": {name: value for name, value in tree.items() if name not in stored} | changes} if changes else {}


class _StatusOnly(msgspec.Struct):
    status: msgspec.Raw = msgspec.Raw(b"null")


_STATUS_DECODER: DeepDecoder[_StatusOnly] = DeepDecoder(_StatusOnly)


@cache
def _default_status(kind: type[KubeObject]) -> bytes:
    """The JSON of a new object's status."""
    (field,) = (field for field in msgspec.structs.fields(kind) if field.name == "status")
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return encode(default) if isinstance(default, Model) else b"{}"


def _require_origin(obj: KubeObject) -> bytes:
    origin = origin_of(obj)
    if origin is None:
        raise ConfigError(
            f"{obj.kind} {obj.key} was not read from a server, so there is nothing to compare it with; "
            "use apply or create, or give the patch explicitly"
        )
    return origin


def _with_changes(obj: KubeObject, origin: bytes, sent: Any) -> Tree:
    decoded, now = encode(decode_stored(type(obj), origin)), encode(obj)
    if decoded == now:
        return cast("Tree", sent)
    return cast("Tree", overlay(sent, decode_tree(decoded), decode_tree(now)))


def merge_patch_between(before: KubeObject, after: KubeObject) -> Tree:
    """The smallest merge patch from one object to another of the same kind, without fields the class does not know."""
    return cast("Tree", merge_patch(to_tree(before), to_tree(after)))
