"""Short names for contents: a hash in letters that cannot spell a word.

Kubernetes prints a 32-bit FNV-1a hash with an alphabet without vowels. Ours is over the JSON of the content rather than
over Go's print of the structure, so the same template has another hash here than there; nothing may depend on which.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubewright.api.codec import decode_tree, encode
from kubewright.api.model import Model

__all__ = ("content_hash", "safe_text", "tree_hash")

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_OFFSET: Final = 2166136261
_PRIME: Final = 16777619
_MASK: Final = 0xFFFFFFFF


def content_hash(content: Model, collisions: int | None = None) -> str:
    """Of a model's content; after a collision, another one for each."""
    return tree_hash(decode_tree(encode(content)), collisions)


def tree_hash(tree: Any, collisions: int | None = None) -> str:
    """Of plain data, whatever the order of its keys."""
    data = msgspec.json.encode(tree, order="deterministic")
    if collisions is not None:
        data += collisions.to_bytes(8, "little")
    return safe_text(str(_fnv32a(data)))


def safe_text(text: str) -> str:
    """Each character replaced by one that is safe in a name."""
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in text.encode())


def _fnv32a(data: bytes) -> int:
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value
