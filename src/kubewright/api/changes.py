"""What changed in an object since it was read, and the object as it should now be on the server.

The heart of "a write never drops a field the class does not know". An object that was read remembers its bytes
(`codec.read`). Three trees are compared: what the server sent, what the class understood of it, and what the class says
now. The difference between the last two is carried over to the first, so that everything unknown stays, also inside the
items of lists.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import msgspec

from kubewright.api.codec import decode, decode_tree, encode, origin_of, to_tree
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
    return _carried_over(obj, origin, decode_tree(origin))


def merge_patch_since_read(obj: KubeObject) -> Tree:
    """The smallest merge patch that brings the server from what was read to what the object says now."""
    origin = _needed_origin(obj)
    sent = decode_tree(origin)
    # The result shares what stayed the same with `sent`, so the comparison skips it.
    return cast("Tree", merge_patch(sent, _carried_over(obj, origin, sent)))


def status_patch_since_read(obj: KubeObject) -> Tree:  # hot
    """What of `merge_patch_since_read` concerns the status; empty if nothing of it was changed.

    Once something was, what the class fills in is said too where the server has nothing: a status that never had
    `ready: 0` is to say it from its first write on, and a field that the schema requires must be there.
    """
    status = getattr(obj, "status", None)
    if not isinstance(status, Model):  # free-form: there is no class that fills anything in
        changes = merge_patch_since_read(obj).get("status")
        return {} if changes is None else {"status": changes}
    # The rest of the object, mostly the larger part, is skipped over rather than decoded.
    sent = _STATUSES.decode(_needed_origin(obj)).status
    stored = decode_tree(sent)
    understood = _status_of_nothing(type(obj)) if stored is None else encode(decode(type(status), sent))
    now = encode(status)
    if understood == now:
        return {}
    tree, stored = decode_tree(now), stored or {}
    changes = merge_patch(stored, overlay(stored, decode_tree(understood), tree))
    return {"status": {name: value for name, value in tree.items() if name not in stored} | changes} if changes else {}


class _StatusAlone(msgspec.Struct):
    status: msgspec.Raw = msgspec.Raw(b"null")


_STATUSES = msgspec.json.Decoder(_StatusAlone)


@cache
def _status_of_nothing(kind: type[KubeObject]) -> bytes:
    """What the class says of an object that has no status yet."""
    (field,) = (field for field in msgspec.structs.fields(kind) if field.name == "status")
    made = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return encode(made) if isinstance(made, Model) else b"{}"


def _needed_origin(obj: KubeObject) -> bytes:
    origin = origin_of(obj)
    if origin is None:
        raise ConfigError(
            f"{obj.kind} {obj.key} was not read from a server, so there is nothing to compare it with; "
            "use apply or create, or give the patch explicitly"
        )
    return origin


def _carried_over(obj: KubeObject, origin: bytes, sent: Any) -> Tree:
    understood, now = encode(decode(type(obj), origin)), encode(obj)
    if understood == now:
        return cast("Tree", sent)
    return cast("Tree", overlay(sent, decode_tree(understood), decode_tree(now)))


def merge_patch_between(before: KubeObject, after: KubeObject) -> Tree:
    """The smallest merge patch from one object to another of the same kind; unknown fields are left alone."""
    return cast("Tree", merge_patch(to_tree(before), to_tree(after)))
