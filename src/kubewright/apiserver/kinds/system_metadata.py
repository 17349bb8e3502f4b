"""The fields of metadata that only the server writes: uid, creation time, generated names, the deletion mark.

Small pure functions on trees, shared by the verbs that write.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from kubewright.api.times import format_time

__all__ = (
    "fill_new",
    "finalizers_of",
    "generated_name",
    "keep_deletion_mark",
    "keep_system_fields",
    "manager_of",
    "meta_of",
    "new_uid",
    "parse_version",
    "wipe",
)

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # no vowels and no look-alikes, as Kubernetes does it
_MAX_BASE: Final = 58
_MAX_MANAGER: Final = 128
_TOO_LARGE: Final = 2**64

_KEPT: Final = ("creationTimestamp", "generation", "selfLink")


def meta_of(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of an object, made if there is none."""
    meta = tree.get("metadata")
    if not isinstance(meta, dict):
        meta = {}
        tree["metadata"] = meta  # type: ignore[index] # trees are dicts; the parameter is only read otherwise
    return meta


def generated_name(base: str) -> str:
    """A name that begins with a base and ends in five random characters."""
    return base[:_MAX_BASE] + "".join(random.choices(_ALPHABET, k=5))


def new_uid() -> str:
    """A random UUID of version 4; `uuid.uuid4` takes three times as long, and every request needs one or two."""
    digits = f"{random.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def fill_new(meta: dict[str, Any], *, now: datetime) -> None:
    """What every new object gets."""
    meta["uid"] = new_uid()
    meta["creationTimestamp"] = format_time(now)
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        meta.pop(name, None)


def wipe(meta: dict[str, Any]) -> None:
    """What a client says of a new object and only the server knows is not heard."""
    for name in ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        meta.pop(name, None)


def parse_version(meta: Mapping[str, Any]) -> int | None:
    """The resourceVersion a client states: 0 without one, None if it is not a number."""
    text = str(meta.get("resourceVersion") or "0")
    return int(text) if text.isascii() and text.isdecimal() and int(text) < _TOO_LARGE else None


def keep_system_fields(meta: dict[str, Any], old: Mapping[str, Any]) -> None:
    """On an update the server's own fields stay as they are, whatever was sent."""
    for name in _KEPT:
        if name in old:
            meta[name] = old[name]
        else:
            meta.pop(name, None)
    keep_deletion_mark(meta, old)
    if not meta.get("uid") and old.get("uid"):
        meta["uid"] = old["uid"]


def keep_deletion_mark(meta: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Nobody takes the mark of deletion away; that somebody tries to set one is for validation to say."""
    if "deletionTimestamp" in old:
        meta["deletionTimestamp"] = old["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in old and meta.get("deletionGracePeriodSeconds") is None:
        meta["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]


def finalizers_of(tree: Mapping[str, Any]) -> list[str]:
    """The finalizers of an object."""
    return list((tree.get("metadata") or {}).get("finalizers") or ())


def manager_of(asked: str, user_agent: str) -> str:
    """Who is noted as the manager of the fields a write sets."""
    return asked or user_agent.partition("/")[0][:_MAX_MANAGER] or "unknown"
