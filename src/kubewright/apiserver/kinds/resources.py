"""One resource the embedded API server serves: its names, its rules, and how its stored bytes become an answer.

`Resource` is one group, version and plural: `apps/v1 deployments`. `Strategy` is what the kind itself demands
(defaults, validation, what an update may touch): one implementation for the built-in kinds (`builtin.strategy`), one
for custom resources (`apiextensions.resource_strategy`). The verbs know only this contract.

Stored bytes carry a number, their `schema_id`: the schema and version they were written under. When a resource's own
one is the same, they are the answer as they are; else they are read, converted and written anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupResource, GroupVersionKind
from kubewright.apiserver.managedfields.reset_fields import ResetFields
from kubewright.apiserver.managedfields.types import FieldType
from kubewright.apiserver.storage.store import Entry
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.responses import encode_json

__all__ = ("Column", "Resource", "Scale", "Strategy", "Subresource", "Tree", "key_of")

Tree = dict[str, Any]


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of objects."""

    name: str
    type: str
    json_path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@final
@dataclass(frozen=True, slots=True)
class Scale:
    """Where an object keeps its replicas."""

    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str | None = None


class Strategy(Protocol):
    """What a kind demands of its objects. Trees are changed in place."""

    unconditional_update: bool
    """Whether an update without a version is taken."""
    create_on_update: bool
    """Whether an update of what is not there creates it."""
    strategic: bool
    """Whether strategic merge patches are understood."""
    converts_slowly: bool
    """Whether a conversion may have to wait for a webhook."""
    selectable: frozenset[str]
    """Fields a selector may name, besides name and namespace."""

    @property
    def field_type(self) -> FieldType:
        """The types server-side apply merges by."""
        ...

    def normalize(self, tree: Tree) -> list[str]:
        """Bring a decoded body into form; returns the paths of unknown fields, which are dropped."""
        ...

    def default(self, tree: Tree) -> None:
        """Fill in what was left out."""
        ...

    def prepare_create(self, tree: Tree, user: Mapping[str, Any]) -> Sequence[str]:
        """Drop what a creator may not set, set what only the server may; returns what the creator, `user`, is told."""
        ...

    def prepare_update(self, tree: Tree, old: Tree, subresource: str) -> None:
        """Put back what this endpoint may not change, and count the generation."""
        ...

    def check_create(self, tree: Tree) -> list[FieldError]:
        """What is wrong with a new object."""
        ...

    def check_update(self, tree: Tree, old: Tree, subresource: str) -> list[FieldError]:
        """What is wrong with a change."""
        ...

    def reserve(self, tree: Tree, old: Tree | None, *, dry_run: bool) -> list[FieldError]:
        """Take what is handed out once, such as an address; called last, nothing can fail afterwards."""
        ...

    def released(self, tree: Tree) -> None:
        """The object is gone: give back what it had reserved."""
        ...

    def warnings(self, tree: Tree, old: Tree | None) -> list[str]:
        """What the writer should know, although it is no error."""
        ...

    def field_values(self, tree: Tree) -> Mapping[str, str]:
        """The values of the selectable fields."""
        ...

    def reset_fields(self, subresource: str) -> ResetFields:
        """Fields a writer to this endpoint never owns."""
        ...

    def grace_period(self, tree: Tree, asked: int | None) -> int:
        """Seconds between the wish to delete and the deletion."""
        ...

    def convert(self, tree: Tree, api_version: str) -> tuple[Tree, FieldType]:
        """The object in another version, at once, and its type there; a LookupError if that cannot be."""
        ...

    async def convert_slowly(self, tree: Tree, api_version: str) -> tuple[Tree, FieldType]:
        """The same, waiting for a webhook where one has to be asked."""
        ...

    async def to_storage(self, trees: list[Tree]) -> list[Tree]:
        """Objects of this version in the version they are stored in."""
        ...

    async def from_storage(self, trees: list[Tree]) -> list[Tree]:
        """Stored objects in this version, pruned and defaulted under today's schema."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Subresource:
    """A path below an object: its name, the kind it speaks and its verbs."""

    name: str
    kind: GroupVersionKind
    verbs: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """What is served under one group, version and plural."""

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
    """The apiVersion the bytes are stored in."""
    schema_id: int = 0
    storage_schema: int = 0
    """The schema under which it stores bytes."""
    custom: bool = False
    columns: Sequence[Column] = ()
    """The printer columns of a custom resource."""
    deprecation: str = ""
    """The warning every request to a deprecated version is answered with."""
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
        """How the bytes of an object begin: its type, which items of a list of a built-in kind do without."""
        return b'{"kind":"%b","apiVersion":"%b",' % (self.kind.kind.encode(), self.kind.api_version.encode())

    def encode(self, tree: Tree) -> bytes:
        """The bytes of an object in this version: its type first."""
        ordered = {"kind": self.kind.kind, "apiVersion": self.kind.api_version, **tree}
        ordered["kind"], ordered["apiVersion"] = self.kind.kind, self.kind.api_version
        return encode_json(ordered)

    def encode_stored(self, tree: Tree) -> bytes:
        """The bytes of an object in the version it is stored in."""
        ordered = {"kind": self.kind.kind, "apiVersion": self.storage_version, **tree}
        ordered["kind"], ordered["apiVersion"] = self.kind.kind, self.storage_version
        return encode_json(ordered)

    async def bytes_of(self, entry: Entry) -> bytes:
        """An object as this version answers it."""
        if entry.schema_id == self.schema_id:
            return entry.value
        return self.encode((await self.strategy.from_storage([decode_json(entry.value)]))[0])

    async def all_bytes(self, entries: Sequence[Entry]) -> list[bytes]:
        """As `bytes_of`, for many, converted in one go."""
        old = [index for index, entry in enumerate(entries) if entry.schema_id != self.schema_id]
        found = [entry.value for entry in entries]
        if old:
            trees = await self.strategy.from_storage([decode_json(found[index]) for index in old])
            for index, tree in zip(old, trees, strict=True):
                found[index] = self.encode(tree)
        return found

    async def tree_of(self, entry: Entry) -> Tree:
        """An object as a tree of its own in this version."""
        tree: Tree = decode_json(entry.value)
        return tree if entry.schema_id == self.schema_id else (await self.strategy.from_storage([tree]))[0]


def key_of(namespace: str, name: str) -> str:
    """The key of an object in its table."""
    return f"{namespace}/{name}" if namespace else name
