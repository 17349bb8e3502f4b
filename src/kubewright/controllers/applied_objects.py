"""Write a child: check whose it is, apply it, and skip the request when it would change nothing.

The memory of one controller about the children it applied. A no-op apply costs no request: the same document was
applied before by this process, and everything in it still stands in the cached object. The first apply after a start
always goes to the server, which alone knows what an earlier version of the operator applied and this one leaves out.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from enum import Enum
from typing import Any, TypeVar, final

import msgspec

from kubewright.api.codec import encode, to_tree
from kubewright.api.kinds import GroupVersion
from kubewright.api.names import ObjectKey
from kubewright.api.owners import controller_of
from kubewright.api.resource import KubeObject, definition_of
from kubewright.errors import ApiError, Conflict

__all__ = (
    "AppliedObjects",
    "Claim",
    "claim_on",
    "is_precondition_failure",
    "is_subset",
    "not_owned_message",
    "with_preconditions",
)

K = TypeVar("K", bound=KubeObject)

_REMEMBERED = 100_000

# What no object has: the first revision of a store is that of its empty beginning.
_VERSION_OF_NOTHING = "1"


class Claim(Enum):
    """Whose an existing child is, as seen by the one who wants to write it."""

    OURS = "ours"
    ADOPTABLE = "adoptable"
    """Nobody manages it, and it carries the labels that say it is meant for us."""
    EARLIER = "earlier"
    """It belonged to an object of the same name that is gone; garbage collection will take it."""
    LEAVING = "leaving"
    """It is being deleted."""
    STRANGER = "stranger"


def claim_on(child: KubeObject, owner: KubeObject, *, labels: dict[str, str] | None = None) -> Claim:
    """Whose an existing object is. `labels` are those that mark an object as meant for this owner."""
    if child.metadata.deletion_timestamp is not None:
        return Claim.LEAVING
    reference = controller_of(child)
    if reference is None:
        wanted = labels or {}
        meant = bool(wanted) and all(child.metadata.labels.get(name) == value for name, value in wanted.items())
        return Claim.ADOPTABLE if meant else Claim.STRANGER
    if reference.uid == owner.metadata.uid:
        return Claim.OURS
    group = GroupVersion.parse(reference.api_version).group
    kind, name = definition_of(type(owner)).gvk, owner.metadata.name
    same = (group, reference.kind, reference.name) == (kind.group, kind.kind, name)
    return Claim.EARLIER if same else Claim.STRANGER


def not_owned_message(child: KubeObject, owner: str, *, labels: dict[str, str] | None = None) -> str:
    """What to tell of a stranger in a child's place: who has it now, and what can be done about it."""
    reference = controller_of(child)
    who = "nor by anybody else" if reference is None else f"but by {reference.kind} {reference.name}"
    ways = ["rename one of the two", "delete it"]
    if reference is None and labels:  # what somebody manages is not adopted, whatever its labels
        ways.append(
            f"label it with {', '.join(f'{name}={value}' for name, value in labels.items())} to have it adopted"
        )
    told = f"{', '.join(ways[:-1])} or {ways[-1]}"
    return f"{child.kind} {child.key} exists and is not managed by {owner} {who}, so it is left as it is; {told}"


def with_preconditions(present: KubeObject | None, child: K) -> K:
    """The child as it is sent: it changes the object that was looked at, or makes one where there is none.

    The cache may be behind, and an apply goes through whatever there is: a stranger of that name would be overwritten
    and taken for a child. So the document says which object it means. One that does so already is left as it is.
    """
    metadata = child.metadata
    if metadata.uid or metadata.resource_version:
        return child
    if present is None:
        metadata = msgspec.structs.replace(metadata, resource_version=_VERSION_OF_NOTHING)
    else:
        metadata = msgspec.structs.replace(metadata, uid=present.metadata.uid)
    sent = copy.copy(child)
    sent.metadata = metadata
    return sent


def is_precondition_failure(error: ApiError) -> bool:
    """Whether an apply was refused because there is another object than the one that was meant, or none."""
    if isinstance(error, Conflict):
        return not error.causes  # those name the managers of fields
    return any(cause.field == "metadata.uid" for cause in error.causes)


@final
class AppliedObjects:
    """What this process has applied, and which version it led to."""

    def __init__(self) -> None:
        self._memory: OrderedDict[tuple[type[KubeObject], ObjectKey], tuple[int, str, str, int]] = OrderedDict()

    def is_noop(self, wanted: KubeObject, present: KubeObject | None) -> bool:
        """Whether applying `wanted` now would change nothing, given the cached object."""
        known = self._memory.get((type(wanted), wanted.key))
        if known is None or present is None:
            return False
        document, uid, version, generation = known
        now = present.metadata
        if now.uid != uid or document != _hash(wanted):
            return False
        if now.resource_version == version:
            return True
        wanted_tree, present_tree = to_tree(wanted), to_tree(present)
        if generation and now.generation == generation:
            # What the server made of it still stands, also what it spells otherwise (`1` for `1000m`) or leaves out (a
            # zero). Only metadata changes without a new generation.
            return is_subset(wanted_tree["metadata"], present_tree["metadata"])
        return is_subset(wanted_tree, present_tree)

    def remember(self, wanted: KubeObject, result: KubeObject) -> None:
        """After a successful apply."""
        key = (type(wanted), wanted.key)
        made = result.metadata
        self._memory[key] = (_hash(wanted), made.uid, made.resource_version, made.generation)
        self._memory.move_to_end(key)
        if len(self._memory) > _REMEMBERED:
            self._memory.popitem(last=False)

    def forget(self, kind: type[KubeObject], key: ObjectKey) -> None:
        """The child is gone."""
        self._memory.pop((kind, key), None)


def is_subset(wanted: Any, present: Any) -> bool:
    """Whether everything in `wanted` is in `present`; what the server added does not matter.

    Lists must have the same length, item by item, but for objects with a name, which may stand among others (a
    sidecar that was injected). Unsure means no: then the server is asked.
    """
    if isinstance(wanted, dict):
        return isinstance(present, dict) and all(
            name in present and is_subset(value, present[name]) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        if not isinstance(present, list):
            return False
        if len(wanted) == len(present):
            return all(is_subset(item, other) for item, other in zip(wanted, present, strict=True))
        return bool(wanted) and all(
            isinstance(item, dict)
            and "name" in item
            and any(isinstance(other, dict) and is_subset(item, other) for other in present)
            for item in wanted
        )
    return bool(wanted == present) and type(wanted) is type(present)


def _hash(obj: KubeObject) -> int:
    return hash(encode(obj, with_status=False))
