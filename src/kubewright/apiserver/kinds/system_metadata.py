"""The fields of metadata that only the server sets: uid, creation and deletion timestamps, generated names.

Small functions on trees, shared by the verbs that write. kube-apiserver: meta.go and update.go in
staging/src/k8s.io/apiserver/pkg/registry/rest.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from kubewright.api.times import format_time

__all__ = (
    "fill_system_fields",
    "finalizers_of",
    "generated_name",
    "keep_deletion_timestamp",
    "keep_system_fields",
    "manager_or_user_agent",
    "meta_of",
    "new_uid",
    "parse_version",
    "wipe_system_fields",
)

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # that of apimachinery's rand.String: no vowels, no look-alikes
_MAX_BASE: Final = 58  # 63 less the five random characters
_MAX_MANAGER: Final = 128
_TOO_LARGE: Final = 2**64

_KEPT: Final = ("creationTimestamp", "generation", "selfLink")


def meta_of(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of an object; an empty one is added if it has none."""
    meta = tree.get("metadata")
    if not isinstance(meta, dict):
        meta = {}
        tree["metadata"] = meta  # type: ignore[index] # trees are dicts; the parameter is only read otherwise
    return meta


def generated_name(base: str) -> str:
    """A name for a `generateName`: that base and five random characters."""
    return base[:_MAX_BASE] + "".join(random.choices(_ALPHABET, k=5))


def new_uid() -> str:
    """A random UUID of version 4; `uuid.uuid4` takes three times as long, and every request needs one or two."""
    digits = f"{random.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def fill_system_fields(meta: dict[str, Any], *, now: datetime) -> None:
    """Set uid and creationTimestamp of a new object."""
    meta["uid"] = new_uid()
    meta["creationTimestamp"] = format_time(now)
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        meta.pop(name, None)


def wipe_system_fields(meta: dict[str, Any]) -> None:
    """Drop the system fields that a client sent with a new object."""
    for name in ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        meta.pop(name, None)


def parse_version(meta: Mapping[str, Any]) -> int | None:
    """The resourceVersion a client states: 0 without one, None if it is not a number."""
    text = str(meta.get("resourceVersion") or "0")
    return int(text) if text.isascii() and text.isdecimal() and int(text) < _TOO_LARGE else None


def keep_system_fields(meta: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Keep the system fields of the old object in an update, whatever the client sent."""
    for name in _KEPT:
        if name in old:
            meta[name] = old[name]
        else:
            meta.pop(name, None)
    keep_deletion_timestamp(meta, old)
    if not meta.get("uid") and old.get("uid"):
        meta["uid"] = old["uid"]


def keep_deletion_timestamp(meta: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Keep the deletion timestamp and grace period of the old object: a deletion cannot be undone.

    Validation compares with the old object and refuses a client that sets one.
    """
    if "deletionTimestamp" in old:
        meta["deletionTimestamp"] = old["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in old and meta.get("deletionGracePeriodSeconds") is None:
        meta["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]


def finalizers_of(tree: Mapping[str, Any]) -> list[str]:
    """The finalizers of an object."""
    return list((tree.get("metadata") or {}).get("finalizers") or ())


def manager_or_user_agent(manager: str, user_agent: str) -> str:
    """The field manager of a write: the option `fieldManager`, or else the program in the User-Agent header."""
    return manager or user_agent.partition("/")[0][:_MAX_MANAGER] or "unknown"
