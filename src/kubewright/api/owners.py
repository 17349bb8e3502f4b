"""Owner references: set, find and compare (controller-runtime: controllerutil).

Kubernetes deletes an object when its last owner is gone. This module enforces two rules that an API server does not
check by itself: an owner is in the same namespace or cluster-scoped, and an object has at most one controller.
"""

from __future__ import annotations

from kubewright.api.metadata import ObjectMeta, OwnerReference
from kubewright.api.resource import KubeObject, definition_of
from kubewright.errors import ConfigError

__all__ = ("controller_of", "is_controlled_by", "owner_reference", "set_controller", "set_owner")


def owner_reference(
    owner: KubeObject, *, controller: bool | None = None, block_owner_deletion: bool | None = None
) -> OwnerReference:
    """A reference to an object that exists: it needs a name and a uid."""
    if not owner.metadata.uid:
        raise ConfigError(f"{owner.kind} {owner.key} has no uid: only an object read from the server can be an owner")
    return OwnerReference(
        api_version=definition_of(type(owner)).api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=controller,
        block_owner_deletion=block_owner_deletion,
    )


def set_owner(owner: KubeObject, owned: KubeObject) -> None:
    """Add `owner` to the owners of `owned`, or update its reference."""
    _check_namespaces(owner, owned)
    _set_reference(owned.metadata, owner_reference(owner))


def set_controller(owner: KubeObject, owned: KubeObject) -> None:
    """Make `owner` the controller of `owned`; a ConfigError if another object is."""
    _check_namespaces(owner, owned)
    current = controller_of(owned)
    if current is not None and current.uid != owner.metadata.uid:
        raise ConfigError(
            f"{owned.kind} {owned.key} is managed by {current.kind} {current.name} already; "
            f"{owner.kind} {owner.key} cannot manage it too"
        )
    _set_reference(owned.metadata, owner_reference(owner, controller=True, block_owner_deletion=True))


def controller_of(owned: KubeObject) -> OwnerReference | None:
    """The reference to the controller, if there is one."""
    return next((reference for reference in owned.metadata.owner_references if reference.controller), None)


def is_controlled_by(owned: KubeObject, owner: KubeObject) -> bool:
    """Whether `owner` itself (same uid, not just the same name) is the controller of `owned`."""
    reference = controller_of(owned)
    return reference is not None and bool(reference.uid) and reference.uid == owner.metadata.uid


def _set_reference(metadata: ObjectMeta, wanted: OwnerReference) -> None:
    for position, reference in enumerate(metadata.owner_references):
        if reference.uid == wanted.uid:
            metadata.owner_references[position] = wanted
            return
    metadata.owner_references.append(wanted)


def _check_namespaces(owner: KubeObject, owned: KubeObject) -> None:
    if owner.metadata.namespace and owner.metadata.namespace != owned.metadata.namespace:
        place = f"in namespace {owned.metadata.namespace}" if owned.metadata.namespace else "in no namespace"
        raise ConfigError(
            f"{owner.kind} {owner.key} cannot own {owned.kind} {owned.metadata.name}, which is {place}: an owner must "
            "be in the same namespace or cluster-scoped, else the garbage collector considers it deleted and deletes "
            "what it owns; write it without an owner (owned=False) and delete it in finalize"
        )
