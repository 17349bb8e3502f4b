"""ObjectList: the items of a list response and the resourceVersion they show.

Each item is decoded from its own bytes and keeps them, so a listed object can be changed and patched like one that
was read alone, and one item does not keep a whole page in memory. `split_list` does not decode the items, for the
cache, which decodes on its own. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar, final

import msgspec

from kubewright._base.deep_json import DeepDecoder
from kubewright.api.codec import read
from kubewright.api.metadata import ListMeta
from kubewright.api.resource import KubeObject
from kubewright.errors import DecodeError

__all__ = ("ObjectList", "decode_list", "split_list")

K = TypeVar("K", bound=KubeObject)


@final
class ObjectList(msgspec.Struct, Generic[K]):
    """Objects of one kind from a list response. Iterates over its items."""

    items: list[K]
    metadata: ListMeta

    @property
    def resource_version(self) -> str:
        """The version this list shows; a watch from here misses nothing."""
        return self.metadata.resource_version

    @property
    def continue_token(self) -> str:
        """Not empty if `limit` cut the list short: pass it to `list` to go on."""
        return self.metadata.continue_

    def __iter__(self) -> Iterator[K]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, position: int) -> K:
        return self.items[position]


class _Frame(msgspec.Struct, gc=False):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


_FRAMES: DeepDecoder[_Frame] = DeepDecoder(_Frame)


def split_list(kind: type[KubeObject], data: bytes) -> tuple[ListMeta, list[msgspec.Raw]]:
    """The metadata and the undecoded items of a list. Each item keeps the whole response alive until copied."""
    try:
        frame = _FRAMES.decode(data)
    except msgspec.DecodeError as exc:
        raise DecodeError(f"the list of {kind.__name__} cannot be read: {exc}") from exc
    return frame.metadata, frame.items or []


def decode_list(kind: type[K], data: bytes) -> ObjectList[K]:
    """The items of a list response. An item that does not match its class is a DecodeError that names it."""
    metadata, items = split_list(kind, data)
    return ObjectList([read(kind, bytes(item)) for item in items], metadata)
