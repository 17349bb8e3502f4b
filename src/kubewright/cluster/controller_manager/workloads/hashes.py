"""Hashes of templates for labels and names, in an alphabet without vowels so that they spell no word.

As in Kubernetes an FNV-1a hash of 32 bits and SafeEncodeString, but over the JSON of the content, not over Go's print
of the struct: the same template has another hash here. No test may depend on a value.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubewright.api.codec import decode_tree, encode
from kubewright.api.model import Model

__all__ = ("content_hash", "safe_encode", "tree_hash")

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_OFFSET: Final = 2166136261
_PRIME: Final = 16777619
_MASK: Final = 0xFFFFFFFF


def content_hash(content: Model, collisions: int | None = None) -> str:
    """The hash of a model; another one for each collision count."""
    return tree_hash(decode_tree(encode(content)), collisions)


def tree_hash(tree: Any, collisions: int | None = None) -> str:
    """The hash of plain data, independent of the order of keys."""
    data = msgspec.json.encode(tree, order="deterministic")
    if collisions is not None:
        data += collisions.to_bytes(8, "little")
    return safe_encode(str(_fnv32a(data)))


def safe_encode(text: str) -> str:
    """SafeEncodeString of k8s.io/apimachinery/pkg/util/rand."""
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in text.encode())


def _fnv32a(data: bytes) -> int:
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value
