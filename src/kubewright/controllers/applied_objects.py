"""Server-side apply of children: whose an existing object is, what the request is conditioned on, and which to skip.

`AppliedObjects` is a controller's memory of the children it applied, so that an apply that changes nothing costs no
request. The functions beside it are pure. Called by `context`.
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

_MAX_OBJECTS = 100_000

# No object has this resourceVersion: etcd's first revision is that of the empty store.
_VERSION_OF_NO_OBJECT = "1"


class Claim(Enum):
    """What an owner may do with an existing object, by its controller reference.

    As `ClaimObject` of kubernetes/pkg/controller/controller_ref_manager.go, which Deployments and ReplicaSets use.
    """

    OWNED = "owned"
    """The owner is its controller."""
    ADOPTABLE = "adoptable"
    """It has no controller, and carries the labels that mark it as meant for the owner."""
    STALE_OWNER = "stale_owner"
    """Its controller is a deleted object of the owner's name; the garbage collector will delete it (decision 0011)."""
    TERMINATING = "terminating"
    """It has a deletionTimestamp."""
    FOREIGN = "foreign"
    """Somebody else controls it, or nobody does."""


def claim_on(child: KubeObject, owner: KubeObject, *, labels: dict[str, str] | None = None) -> Claim:
    """The owner's claim on an existing object. `labels` mark an object without controller as adoptable."""
    if child.metadata.deletion_timestamp is not None:
        return Claim.TERMINATING
    reference = controller_of(child)
    if reference is None:
        wanted = labels or {}
        matches = bool(wanted) and all(child.metadata.labels.get(name) == value for name, value in wanted.items())
        return Claim.ADOPTABLE if matches else Claim.FOREIGN
    if reference.uid == owner.metadata.uid:
        return Claim.OWNED
    # Another uid. If group, kind and name are the owner's, the reference is to an object deleted before it. The
    # version does not count: an owner reference keeps the one it was written with.
    group = GroupVersion.parse(reference.api_version).group
    kind, name = definition_of(type(owner)).gvk, owner.metadata.name
    same = (group, reference.kind, reference.name) == (kind.group, kind.kind, name)
    return Claim.STALE_OWNER if same else Claim.FOREIGN


def not_owned_message(child: KubeObject, owner: str, *, labels: dict[str, str] | None = None) -> str:
    """What people are told of a foreign object in a child's place: who controls it, and what they can do."""
    reference = controller_of(child)
    who = "nor by anybody else" if reference is None else f"but by {reference.kind} {reference.name}"
    ways = ["rename one of the two", "delete it"]
    if reference is None and labels:  # an object with a controller is never adopted, whatever its labels
        ways.append(
            f"label it with {', '.join(f'{name}={value}' for name, value in labels.items())} to have it adopted"
        )
    advice = f"{', '.join(ways[:-1])} or {ways[-1]}"
    return f"{child.kind} {child.key} exists and is not managed by {owner} {who}, so it is left as it is; {advice}"


def with_preconditions(present: KubeObject | None, child: K) -> K:
    """The child as it is sent: the apply changes the object that was read, or creates one (decision 0012).

    The cache may be stale, and server-side apply writes whatever has the name: a foreign object would be overwritten
    and owned. kube-apiserver rejects an apply whose `metadata.uid` or `metadata.resourceVersion` is not that of the
    present object. A child that sets one of the two itself is sent as it is.
    """
    metadata = child.metadata
    if metadata.uid or metadata.resource_version:
        return child
    if present is None:
        metadata = msgspec.structs.replace(metadata, resource_version=_VERSION_OF_NO_OBJECT)
    else:
        metadata = msgspec.structs.replace(metadata, uid=present.metadata.uid)
    sent = copy.copy(child)
    sent.metadata = metadata
    return sent


def is_precondition_failure(error: ApiError) -> bool:
    """Whether an apply failed because the object is another than `with_preconditions` expected, or is gone."""
    if isinstance(error, Conflict):
        return not error.causes  # a conflict with other field managers names them as causes
    return any(cause.field == "metadata.uid" for cause in error.causes)


@final
class AppliedObjects:
    """What this process has applied, and which version the server made of it.

    An apply is a no-op if this process has applied the same document before, and the cached object still has
    everything in it. The first apply after a start always goes to the server: only the server knows which fields an
    earlier version of the operator applied and this one leaves out, and removes them.
    """

    def __init__(self) -> None:
        self._applied: OrderedDict[tuple[type[KubeObject], ObjectKey], tuple[int, str, str, int]] = OrderedDict()

    def is_noop(self, wanted: KubeObject, present: KubeObject | None) -> bool:
        """Whether applying `wanted` now would change nothing, given the cached object."""
        known = self._applied.get((type(wanted), wanted.key))
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
            # The spec is as the server made it of the same document, also where the server spells a value otherwise
            # (`1` for `1000m`) or leaves it out (a zero). Only metadata and status change without a new generation.
            return is_subset(wanted_tree["metadata"], present_tree["metadata"])
        return is_subset(wanted_tree, present_tree)

    def remember(self, wanted: KubeObject, result: KubeObject) -> None:
        """Call after a successful apply."""
        key = (type(wanted), wanted.key)
        made = result.metadata
        self._applied[key] = (_hash(wanted), made.uid, made.resource_version, made.generation)
        self._applied.move_to_end(key)
        if len(self._applied) > _MAX_OBJECTS:
            self._applied.popitem(last=False)

    def forget(self, kind: type[KubeObject], key: ObjectKey) -> None:
        """The object is deleted."""
        self._applied.pop((kind, key), None)


def is_subset(wanted: Any, present: Any) -> bool:
    """Whether `present` has everything in `wanted`; fields that the server or others added do not matter.

    Lists must have the same length and are compared item by item. A list of named items may have others among them,
    such as an injected sidecar. When in doubt the answer is no: then the apply is sent, and the server decides.
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
