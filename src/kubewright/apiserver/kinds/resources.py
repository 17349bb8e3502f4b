"""One resource the API server serves: its names, its strategy, and how its stored bytes become a response.

`Resource` is one group, version and plural: `apps/v1 deployments`. `Strategy` is what is particular to a kind:
defaults, validation, which fields an update may change. It combines kube-apiserver's RESTCreateStrategy,
RESTUpdateStrategy and RESTDeleteStrategy (staging/src/k8s.io/apiserver/pkg/registry/rest) with the scheme's
conversions. Built-in kinds have one implementation (`builtin.strategy`), custom resources another
(`apiextensions.resource_strategy`); the verbs know only this contract.

Stored bytes carry a number, their `schema_id`: the version and schema they were written under. When the resource has
the same one, they are the response as they are; else they are decoded, converted and encoded again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, final

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupResource, GroupVersionKind
from kubewright.apiserver.managedfields.reset_fields import ResetFields
from kubewright.apiserver.managedfields.types import FieldType
from kubewright.apiserver.storage.store import Entry
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.responses import encode_json

__all__ = ("NO_RESERVATION", "Column", "Reservation", "Resource", "Scale", "Strategy", "Subresource", "Tree", "key_of")

Tree = dict[str, Any]


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A printer column."""

    name: str
    type: str
    json_path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@final
@dataclass(frozen=True, slots=True)
class Scale:
    """The JSON paths of the scale subresource of a custom resource."""

    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str | None = None


@final
class Reservation:
    """What one write has allocated, such as a cluster IP: freed at the end of the `with` block unless it is kept."""

    __slots__ = ("_commit", "_revert")

    def __init__(self, commit: Callable[[], None] | None = None, revert: Callable[[], None] | None = None) -> None:
        """`commit` is called when the object has been written, `revert` when it has not."""
        self._commit = commit
        self._revert = revert

    def keep(self) -> None:
        """The object is written: what it has is its own."""
        self._revert = None
        if self._commit is not None:
            self._commit()

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *error: object) -> None:
        if self._revert is not None:
            self._revert()


NO_RESERVATION: Final = Reservation()
"""That of the kinds of which objects share nothing."""


class Strategy(Protocol):
    """What is particular to a kind. Trees are changed in place."""

    allow_unconditional_update: bool
    """Whether an update need not state a resourceVersion."""
    allow_create_on_update: bool
    """Whether an update of an object that is not there creates it."""
    strategic_merge_patch: bool
    """Whether the kind has patch strategies and merge keys."""
    has_conversion_webhook: bool
    """Whether a conversion calls a webhook, so that a write waits and other requests run meanwhile."""
    selectable_fields: frozenset[str]
    """The fields a field selector may name, besides name and namespace."""

    @property
    def field_type(self) -> FieldType:
        """The types server-side apply merges by."""
        ...

    def normalize(self, tree: Tree) -> list[str]:
        """Drop unknown fields of a decoded body and make its values canonical; returns the paths of these fields."""
        ...

    def default(self, tree: Tree) -> None:
        """Set the defaults."""
        ...

    def prepare_for_create(self, tree: Tree, user: Mapping[str, Any]) -> Sequence[str]:
        """Reset the fields a client may not set on create; returns warnings. `user` creates the object."""
        ...

    def prepare_for_update(self, tree: Tree, old: Tree, subresource: str) -> None:
        """Restore the fields this endpoint may not change, and increment the generation if the spec has changed."""
        ...

    def validate(self, tree: Tree) -> list[FieldError]:
        """The errors of a new object."""
        ...

    def validate_update(self, tree: Tree, old: Tree, subresource: str) -> list[FieldError]:
        """The errors of a changed object. What was invalid before and has not changed may be forgiven (ratcheting)."""
        ...

    def reserve(self, tree: Tree, old: Tree | None, subresource: str) -> Reservation:
        """Allocate what only one object can have, such as a cluster IP, and set it in the object; or raise
        `StatusError`. Called before the object is prepared (BeginCreate and BeginUpdate of the generic registry)."""
        ...

    def release(self, tree: Tree) -> None:
        """The object is removed: free what `reserve` allocated."""
        ...

    def warnings(self, tree: Tree, old: Tree | None) -> list[str]:
        """The warnings for the client that writes the object."""
        ...

    def field_values(self, tree: Tree) -> Mapping[str, str]:
        """The values of the selectable fields of an object."""
        ...

    def reset_fields(self, subresource: str) -> ResetFields:
        """The fields nobody can own by a write to this endpoint."""
        ...

    def grace_period(self, tree: Tree, requested: int | None) -> int:
        """The seconds between the delete of an object and its removal; `requested` is the option of the request."""
        ...

    def convert(self, tree: Tree, api_version: str) -> tuple[Tree, FieldType]:
        """The object in another version, and its type there; LookupError if there is none or it takes a webhook."""
        ...

    async def convert_by_webhook(self, tree: Tree, api_version: str) -> tuple[Tree, FieldType]:
        """As `convert`, by the webhook of the kind if it has one."""
        ...

    async def to_storage(self, trees: list[Tree]) -> list[Tree]:
        """Objects of this version in the storage version."""
        ...

    async def from_storage(self, trees: list[Tree]) -> list[Tree]:
        """Stored objects in this version, pruned and defaulted by the present schema."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource: its name, the kind of its bodies and its verbs."""

    name: str
    kind: GroupVersionKind
    verbs: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """The resource of one group, version and plural."""

    kind: GroupVersionKind
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    strategy: Strategy
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    list_kind: str = ""
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    storage_version: str = ""
    """The apiVersion objects are stored in."""
    schema_id: int = 0
    storage_schema: int = 0
    """The `schema_id` of the bytes this resource stores."""
    custom: bool = False
    columns: Sequence[Column] = ()
    """The printer columns of a custom resource."""
    deprecation: str = ""
    """The warning of a deprecated version, which every response carries."""
    scale: Scale | None = None
    """Where a custom resource keeps its replicas."""
    group_resource: GroupResource = field(init=False)
    """The resource, whatever version."""
    table: str = field(init=False)
    """The name of the table its objects are in: that of the group they are stored as."""

    def __post_init__(self) -> None:
        # Every request asks for these two, some plugins of admission more than once.
        object.__setattr__(self, "group_resource", GroupResource(self.kind.group, self.plural))
        object.__setattr__(self, "table", f"{self.storage_version.rpartition('/')[0]}/{self.plural}")

    @property
    def prefix(self) -> bytes:
        """The first bytes of an encoded object: kind and apiVersion, which the items of a built-in list do not have."""
        return b'{"kind":"%b","apiVersion":"%b",' % (self.kind.kind.encode(), self.kind.api_version.encode())

    def encode(self, tree: Tree) -> bytes:
        """The bytes of an object of this version, its type first."""
        ordered = {"kind": self.kind.kind, "apiVersion": self.kind.api_version, **tree}
        ordered["kind"], ordered["apiVersion"] = self.kind.kind, self.kind.api_version
        return encode_json(ordered)

    def encode_stored(self, tree: Tree) -> bytes:
        """The bytes of an object of the storage version."""
        ordered = {"kind": self.kind.kind, "apiVersion": self.storage_version, **tree}
        ordered["kind"], ordered["apiVersion"] = self.kind.kind, self.storage_version
        return encode_json(ordered)

    async def bytes_of(self, entry: Entry) -> bytes:
        """A stored object as bytes of this version."""
        if entry.schema_id == self.schema_id:
            return entry.value
        return self.encode((await self.strategy.from_storage([decode_json(entry.value)]))[0])

    async def all_bytes(self, entries: Sequence[Entry]) -> list[bytes]:
        """As `bytes_of`, for many objects with one conversion."""
        old = [index for index, entry in enumerate(entries) if entry.schema_id != self.schema_id]
        found = [entry.value for entry in entries]
        if old:
            trees = await self.strategy.from_storage([decode_json(found[index]) for index in old])
            for index, tree in zip(old, trees, strict=True):
                found[index] = self.encode(tree)
        return found

    async def tree_of(self, entry: Entry) -> Tree:
        """A stored object as a new tree of this version."""
        tree: Tree = decode_json(entry.value)
        return tree if entry.schema_id == self.schema_id else (await self.strategy.from_storage([tree]))[0]


def key_of(namespace: str, name: str) -> str:
    """The key of an object in its table."""
    return f"{namespace}/{name}" if namespace else name
