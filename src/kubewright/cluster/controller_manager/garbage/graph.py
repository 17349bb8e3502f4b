"""Who owns whom: the graph that garbage collection decides by.

Every object that was seen is a node, found by its uid. An owner that is referred to and was not seen is a node too, a
*virtual* one, until the server has been asked about it. Told of every change, the graph answers with the work that
follows: objects to look at for deletion, and owners whose children are to be orphaned. Pure; `garbage` does the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal, final

import msgspec

from kubewright.api.kinds import GroupVersion
from kubewright.api.metadata import ObjectMeta, OwnerReference

__all__ = ("FOREGROUND", "ORPHAN", "Graph", "Member", "Ref", "Work")

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"

Work = tuple[Literal["delete", "orphan"], str]
"""What to do, and the uid of the object."""


@final
class Ref(msgspec.Struct, frozen=True):
    """An object by its coordinates."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        place = f"namespace: {self.namespace}, name: {self.name}, uid: {self.uid}"
        return f"[{self.api_version}/{self.kind}, {place}]"

    @property
    def place(self) -> tuple[str, str, str, str, str]:
        """The coordinates in any version of the group."""
        return GroupVersion.parse(self.api_version).group, self.kind, self.namespace, self.name, self.uid

    def is_meant_by(self, reference: OwnerReference) -> bool:
        """Whether a reference names these coordinates, in any version of the group."""
        return (
            self.kind == reference.kind
            and self.name == reference.name
            and GroupVersion.parse(self.api_version).group == GroupVersion.parse(reference.api_version).group
        )


@final
class Member:
    """One object in the graph."""

    __slots__ = ("dependents", "foreground", "leaving", "owners", "ref", "virtual")

    def __init__(self, ref: Ref, *, virtual: bool = False) -> None:
        self.ref = ref
        self.virtual = virtual
        self.owners: tuple[OwnerReference, ...] = ()
        self.dependents: dict[str, Member] = {}
        self.leaving = False
        """It is being deleted."""
        self.foreground = False
        """It is being deleted and waits for its dependents."""

    def blocking(self) -> Iterator[Member]:
        """The dependents whose presence holds up a foreground deletion."""
        for dependent in self.dependents.values():
            if any(owner.uid == self.ref.uid and owner.block_owner_deletion for owner in dependent.owners):
                yield dependent


@final
class Graph:
    """All objects and their owners."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.misplaced: list[tuple[Ref, Ref]] = []
        """Children whose owner is in another namespace, with the owner as they name it; who reports them clears it."""

    def observe(self, ref: Ref, metadata: ObjectMeta) -> list[Work]:
        """An object was seen, new or changed."""
        work: list[Work] = []
        member = self.members.get(ref.uid)
        if member is None:
            member = self.members[ref.uid] = Member(ref)
        elif member.virtual or member.ref != ref:
            work += self._found(member, ref)
        work += self._set_owners(member, tuple(metadata.owner_references))
        if metadata.deletion_timestamp is None:
            return work
        member.leaving = True
        if FOREGROUND in metadata.finalizers:
            if not member.foreground:
                member.foreground = True
                work += [("delete", uid) for uid in member.dependents]
                work.append(("delete", ref.uid))
        elif ORPHAN in metadata.finalizers:
            work.append(("orphan", ref.uid))
        return work

    def gone(self, uid: str) -> list[Work]:
        """An object is no more; or a virtual one never was."""
        member = self.members.pop(uid, None)
        if member is None:
            return []
        work: list[Work] = [("delete", dependent) for dependent in member.dependents]
        for reference in member.owners:
            owner = self._part(member, reference.uid)
            if owner is not None and owner.foreground:
                work.append(("delete", reference.uid))
        return work

    def lost_sight(self, uid: str) -> list[Work]:
        """Its kind can no longer be watched, which does not mean that it is gone; whoever depends on it still does."""
        member = self.members.get(uid)
        if member is None:
            return []
        for reference in member.owners:
            self._part(member, reference.uid)
        member.owners = ()
        if not member.dependents:
            del self.members[uid]
            return []
        member.virtual, member.leaving, member.foreground = True, False, False
        return [("delete", uid)]

    def never_was(self, ref: Ref) -> list[Work]:
        """The server has nothing at the coordinates by which some children name this owner.

        Others may name it by other coordinates: then those are to be looked at next.
        """
        member = self.members.get(ref.uid)
        if member is None:
            return []
        meant = {uid for uid, child in member.dependents.items() if _names(child, ref)}
        work: list[Work] = [("delete", uid) for uid in meant]
        if not member.virtual:
            return work
        other = next((child for uid, child in member.dependents.items() if uid not in meant), None)
        if other is None:
            return self.gone(ref.uid)
        reference = next(owner for owner in other.owners if owner.uid == ref.uid)
        member.ref = _named_by(other, reference)
        return work

    def of_kind(self, api_version: str, kind: str) -> list[str]:
        """The uids of all objects of a kind that were seen."""
        return [
            uid
            for uid, member in self.members.items()
            if not member.virtual and (member.ref.api_version, member.ref.kind) == (api_version, kind)
        ]

    def _found(self, member: Member, ref: Ref) -> list[Work]:
        """A virtual owner is real; children that name it by other coordinates need a look."""
        member.ref, member.virtual = ref, False
        work: list[Work] = []
        for uid, dependent in member.dependents.items():
            if self._is_misplaced(dependent.ref, ref):
                self._report(dependent.ref, member)
                work.append(("delete", uid))
            elif not any(owner.uid == ref.uid and ref.is_meant_by(owner) for owner in dependent.owners):
                work.append(("delete", uid))
        return work

    def _set_owners(self, member: Member, owners: tuple[OwnerReference, ...]) -> list[Work]:
        if owners == member.owners:
            return []
        before = {owner.uid: owner for owner in member.owners}
        after = {owner.uid: owner for owner in owners}
        member.owners = owners
        work: list[Work] = []
        for uid, reference in before.items():
            owner = self.members.get(uid)
            if owner is None:
                continue
            if uid not in after:
                self._part(member, uid)
            blocked = reference.block_owner_deletion
            unblocked = uid not in after or (blocked and not after[uid].block_owner_deletion)
            if owner.foreground and unblocked:
                work.append(("delete", uid))
        for uid, reference in after.items():
            if uid not in before:
                work += self._join(member, reference)
        return work

    def _part(self, member: Member, uid: str) -> Member | None:
        """A child no longer names this owner; one that nobody else names and nobody has seen is forgotten."""
        owner = self.members.get(uid)
        if owner is None:
            return None
        owner.dependents.pop(member.ref.uid, None)
        if owner.virtual and not owner.dependents:
            del self.members[uid]
        return owner

    def _join(self, member: Member, reference: OwnerReference) -> Iterable[Work]:
        owner = self.members.get(reference.uid)
        if owner is None:
            owner = self.members[reference.uid] = Member(_named_by(member, reference), virtual=True)
            owner.dependents[member.ref.uid] = member
            return (("delete", reference.uid),)
        owner.dependents[member.ref.uid] = member
        if not owner.virtual and self._is_misplaced(member.ref, owner.ref):
            self._report(member.ref, owner)
            return (("delete", member.ref.uid),)
        if not owner.ref.is_meant_by(reference) or (owner.virtual and owner.ref.namespace != member.ref.namespace):
            return (("delete", member.ref.uid),)
        # An owner that is on its way out takes late-comers along.
        return (("delete", member.ref.uid),) if owner.foreground else ()

    @staticmethod
    def _is_misplaced(child: Ref, owner: Ref) -> bool:
        return bool(owner.namespace) and owner.namespace != child.namespace

    def _report(self, child: Ref, owner: Member) -> None:
        named = msgspec.structs.replace(owner.ref, namespace=child.namespace)
        self.misplaced.append((child, named))


def _named_by(child: Member, reference: OwnerReference) -> Ref:
    """The owner as a child names it: in the child's own namespace, as far as that can be told."""
    return Ref(reference.api_version, reference.kind, child.ref.namespace, reference.name, reference.uid)


def _names(child: Member, ref: Ref) -> bool:
    near = not ref.namespace or child.ref.namespace == ref.namespace
    return near and any(owner.uid == ref.uid and ref.is_meant_by(owner) for owner in child.owners)
