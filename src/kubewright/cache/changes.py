"""Change: what an informer tells its handlers when an object is added, updated or deleted.

Small and immutable. The objects before and after are decoded when first read, once for all handlers, because most
predicates look at metadata alone or at nothing. They are shared: read them, do not change them; a reconciler gets its
own copy from the reader. `cache.overlay` makes changes, `cache.informer` delivers them.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Generic, Literal, TypeVar, final

import msgspec

from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.cache.store import Entry, metadata_in

__all__ = ("Change", "ChangeType", "LazyObject", "change_of")

K = TypeVar("K", bound=KubeObject)
ChangeType = Literal["added", "updated", "deleted"]


@final
class LazyObject(Generic[K]):
    """An object at one version, decoded when first read, its metadata apart from the rest."""

    __slots__ = ("_decode", "_entry", "_key", "_metadata", "_object")

    def __init__(
        self, key: ObjectKey, entry: Entry | None, decode: Callable[[ObjectKey, Entry], K] | None, obj: K | None = None
    ) -> None:
        self._key = key
        self._entry = entry
        self._decode = decode
        self._object = obj
        self._metadata: ObjectMeta | None = None

    @property
    def object(self) -> K:
        if self._object is None:
            assert self._entry is not None
            assert self._decode is not None
            self._object = self._decode(self._key, self._entry)
        return self._object

    @property
    def metadata(self) -> ObjectMeta:
        if self._object is not None:
            return self._object.metadata
        if self._metadata is None:
            assert self._entry is not None
            self._metadata = metadata_in(self._entry.data)
        return self._metadata


@final
class Change(msgspec.Struct, Generic[K], frozen=True, kw_only=True, gc=False):
    """One change of one object."""

    type: ChangeType
    key: ObjectKey
    kind: builtins.type[K]
    before: LazyObject[K] | None = None
    """`old` and `old_metadata`, undecoded until read."""
    after: LazyObject[K] | None = None
    """`new` and `new_metadata`, undecoded until read."""
    initial: bool = False
    """Part of the initial list: the object existed before the watch."""
    resync: bool = False
    """Nothing changed: the periodic resync of a handler with the store."""
    own: bool = False
    """This process wrote this very version; the version proves it."""
    final_state_unknown: bool = False
    """A deletion that the watch did not show and a relist found: `old` may be older than the object's last state.

    client-go's DeletedFinalStateUnknown.
    """

    @property
    def old(self) -> K | None:
        """The object before, None if it was added. Of a deleted one, its last known state."""
        return None if self.before is None else self.before.object

    @property
    def new(self) -> K | None:
        """The object after, None if it was deleted."""
        return None if self.after is None else self.after.object

    @property
    def old_metadata(self) -> ObjectMeta | None:
        """The metadata before, without decoding spec and status."""
        return None if self.before is None else self.before.metadata

    @property
    def new_metadata(self) -> ObjectMeta | None:
        """The metadata after, without decoding spec and status."""
        return None if self.after is None else self.after.metadata


def change_of(
    *,
    old: K | None = None,
    new: K | None = None,
    initial: bool = False,
    resync: bool = False,
    own: bool = False,
    final_state_unknown: bool = False,
) -> Change[K]:
    """A change between objects at hand, for sources other than a watch and for tests."""
    known = new if new is not None else old
    if known is None:
        raise ValueError("a change has an old object, a new one or both")
    return Change(
        type="deleted" if new is None else "added" if old is None else "updated",
        key=known.key,
        kind=type(known),
        before=None if old is None else LazyObject(old.key, None, None, old),
        after=None if new is None else LazyObject(new.key, None, None, new),
        initial=initial,
        resync=resync,
        own=own,
        final_state_unknown=final_state_unknown,
    )
