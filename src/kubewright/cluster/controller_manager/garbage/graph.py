"""The dependency graph of the garbage collector.

Every observed object is a node, by uid. An owner that was referred to but not observed is a *virtual* node until a
worker has read it from the server. Each change of the graph returns work items: objects to try to delete, and owners
whose dependents to orphan. Pure, after pkg/controller/garbagecollector/graph_builder.go; `collector` processes the
items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal, final

import msgspec

from kubewright.api.kinds import GroupVersion
from kubewright.api.metadata import ObjectMeta, OwnerReference

__all__ = ("FOREGROUND", "ORPHAN", "Graph", "GraphNode", "ObjectReference", "WorkItem")

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"

WorkItem = tuple[Literal["delete", "orphan"], str]
"""The action, and the uid of the object: the queues attemptToDelete and attemptToOrphan of upstream."""


@final
class ObjectReference(msgspec.Struct, frozen=True):
    """The identity of an object: its coordinates and its uid."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        coordinates = f"namespace: {self.namespace}, name: {self.name}, uid: {self.uid}"
        return f"[{self.api_version}/{self.kind}, {coordinates}]"

    @property
    def coordinates(self) -> tuple[str, str, str, str, str]:
        """The identity without the version, which differs between references to one object."""
        return GroupVersion.parse(self.api_version).group, self.kind, self.namespace, self.name, self.uid

    def matches(self, reference: OwnerReference) -> bool:
        """Whether an owner reference has this group, kind and name, in any version."""
        return (
            self.kind == reference.kind
            and self.name == reference.name
            and GroupVersion.parse(self.api_version).group == GroupVersion.parse(reference.api_version).group
        )


@final
class GraphNode:
    """One object in the graph."""

    __slots__ = ("being_deleted", "deleting_dependents", "dependents", "owners", "ref", "virtual")

    def __init__(self, ref: ObjectReference, *, virtual: bool = False) -> None:
        self.ref = ref
        self.virtual = virtual
        self.owners: tuple[OwnerReference, ...] = ()
        self.dependents: dict[str, GraphNode] = {}
        self.being_deleted = False
        """Whether it has a deletion timestamp."""
        self.deleting_dependents = False
        """Whether it waits for the deletion of its dependents (finalizer `foregroundDeletion`)."""

    def blocking_dependents(self) -> Iterator[GraphNode]:
        """The dependents that block a foreground deletion (`blockOwnerDeletion`)."""
        for dependent in self.dependents.values():
            if any(owner.uid == self.ref.uid and owner.block_owner_deletion for owner in dependent.owners):
                yield dependent


@final
class Graph:
    """The nodes of all objects and their owners."""

    def __init__(self) -> None:
        self.nodes: dict[str, GraphNode] = {}
        self.invalid_namespace_references: list[tuple[ObjectReference, ObjectReference]] = []
        """Dependents whose owner is in another namespace, with the owner as they refer to it. `collector` emits an
        event for each and clears the list."""

    def add_or_update(self, ref: ObjectReference, metadata: ObjectMeta) -> list[WorkItem]:
        """Process an added or updated object."""
        items: list[WorkItem] = []
        node = self.nodes.get(ref.uid)
        if node is None:
            node = self.nodes[ref.uid] = GraphNode(ref)
        elif node.virtual or node.ref != ref:
            items += self._mark_observed(node, ref)
        items += self._set_owners(node, tuple(metadata.owner_references))
        if metadata.deletion_timestamp is None:
            return items
        node.being_deleted = True
        if FOREGROUND in metadata.finalizers:
            if not node.deleting_dependents:
                node.deleting_dependents = True
                items += [("delete", uid) for uid in node.dependents]
                items.append(("delete", ref.uid))
        elif ORPHAN in metadata.finalizers:
            items.append(("orphan", ref.uid))
        return items

    def remove(self, uid: str) -> list[WorkItem]:
        """Process a deleted object, or remove a virtual node whose object does not exist."""
        node = self.nodes.pop(uid, None)
        if node is None:
            return []
        items: list[WorkItem] = [("delete", dependent) for dependent in node.dependents]
        for reference in node.owners:
            owner = self._remove_dependent(node, reference.uid)
            if owner is not None and owner.deleting_dependents:
                items.append(("delete", reference.uid))
        return items

    def make_virtual(self, uid: str) -> list[WorkItem]:
        """Its kind cannot be watched any more, but the object may exist: dependents keep the node as a virtual one."""
        node = self.nodes.get(uid)
        if node is None:
            return []
        for reference in node.owners:
            self._remove_dependent(node, reference.uid)
        node.owners = ()
        if not node.dependents:
            del self.nodes[uid]
            return []
        node.virtual, node.being_deleted, node.deleting_dependents = True, False, False
        return [("delete", uid)]

    def owner_absent(self, ref: ObjectReference) -> list[WorkItem]:
        """The server has no such object at these coordinates.

        Dependents that refer to these coordinates may be deleted. Other dependents may refer to the same uid by other
        coordinates: then a virtual node gets those, to be checked next. This is the handling of virtual delete events
        in graph_builder.go (getAlternateOwnerIdentity): references with the wrong coordinates must not delete
        dependents with the right ones.
        """
        node = self.nodes.get(ref.uid)
        if node is None:
            return []
        referring = {uid for uid, child in node.dependents.items() if _refers_to(child, ref)}
        items: list[WorkItem] = [("delete", uid) for uid in referring]
        if not node.virtual:
            return items
        other = next((child for uid, child in node.dependents.items() if uid not in referring), None)
        if other is None:
            return self.remove(ref.uid)
        reference = next(owner for owner in other.owners if owner.uid == ref.uid)
        node.ref = _owner_reference(other, reference)
        return items

    def uids_of_kind(self, api_version: str, kind: str) -> list[str]:
        """The uids of all observed objects of a kind."""
        return [
            uid
            for uid, node in self.nodes.items()
            if not node.virtual and (node.ref.api_version, node.ref.kind) == (api_version, kind)
        ]

    def _mark_observed(self, node: GraphNode, ref: ObjectReference) -> list[WorkItem]:
        """A virtual node was observed: check dependents that refer to it by other coordinates."""
        node.ref, node.virtual = ref, False
        items: list[WorkItem] = []
        for uid, dependent in node.dependents.items():
            if self._is_in_other_namespace(dependent.ref, ref):
                self._report_invalid_namespace(dependent.ref, node)
                items.append(("delete", uid))
            elif not any(owner.uid == ref.uid and ref.matches(owner) for owner in dependent.owners):
                items.append(("delete", uid))
        return items

    def _set_owners(self, node: GraphNode, owners: tuple[OwnerReference, ...]) -> list[WorkItem]:
        if owners == node.owners:
            return []
        old_owners = {owner.uid: owner for owner in node.owners}
        new_owners = {owner.uid: owner for owner in owners}
        node.owners = owners
        items: list[WorkItem] = []
        for uid, reference in old_owners.items():
            owner = self.nodes.get(uid)
            if owner is None:
                continue
            if uid not in new_owners:
                self._remove_dependent(node, uid)
            blocked = reference.block_owner_deletion
            unblocked = uid not in new_owners or (blocked and not new_owners[uid].block_owner_deletion)
            if owner.deleting_dependents and unblocked:
                items.append(("delete", uid))
        for uid, reference in new_owners.items():
            if uid not in old_owners:
                items += self._add_dependent(node, reference)
        return items

    def _remove_dependent(self, node: GraphNode, uid: str) -> GraphNode | None:
        """Remove a dependent from an owner, and the owner if it is virtual and has no other dependents."""
        owner = self.nodes.get(uid)
        if owner is None:
            return None
        owner.dependents.pop(node.ref.uid, None)
        if owner.virtual and not owner.dependents:
            del self.nodes[uid]
        return owner

    def _add_dependent(self, node: GraphNode, reference: OwnerReference) -> Iterable[WorkItem]:
        owner = self.nodes.get(reference.uid)
        if owner is None:
            owner = self.nodes[reference.uid] = GraphNode(_owner_reference(node, reference), virtual=True)
            owner.dependents[node.ref.uid] = node
            return (("delete", reference.uid),)
        owner.dependents[node.ref.uid] = node
        if not owner.virtual and self._is_in_other_namespace(node.ref, owner.ref):
            self._report_invalid_namespace(node.ref, owner)
            return (("delete", node.ref.uid),)
        if not owner.ref.matches(reference) or (owner.virtual and owner.ref.namespace != node.ref.namespace):
            return (("delete", node.ref.uid),)
        # An owner that is deleting its dependents deletes new ones too.
        return (("delete", node.ref.uid),) if owner.deleting_dependents else ()

    @staticmethod
    def _is_in_other_namespace(child: ObjectReference, owner: ObjectReference) -> bool:
        return bool(owner.namespace) and owner.namespace != child.namespace

    def _report_invalid_namespace(self, child: ObjectReference, owner: GraphNode) -> None:
        named = msgspec.structs.replace(owner.ref, namespace=child.namespace)
        self.invalid_namespace_references.append((child, named))


def _owner_reference(child: GraphNode, reference: OwnerReference) -> ObjectReference:
    """The identity of an owner as a dependent refers to it, assumed to be in the dependent's namespace."""
    return ObjectReference(reference.api_version, reference.kind, child.ref.namespace, reference.name, reference.uid)


def _refers_to(child: GraphNode, ref: ObjectReference) -> bool:
    same_namespace = not ref.namespace or child.ref.namespace == ref.namespace
    return same_namespace and any(owner.uid == ref.uid and ref.matches(owner) for owner in child.owners)
