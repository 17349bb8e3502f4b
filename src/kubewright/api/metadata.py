"""ObjectMeta: the metadata every object has, names, labels, versions, owners.

Plain data. An empty string, list or map here always means "not set" to Kubernetes, so empty values are not sent and
code can write `obj.metadata.labels["app"] = "web"` without checking first.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from kubewright.api.model import Model
from kubewright.api.names import ObjectKey

__all__ = ("ListMeta", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference")


class OwnerReference(Model, omit_empty=True):
    """An owner of an object; the garbage collector deletes the object when its last owner is gone."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    """True for the one owner that manages the object."""
    block_owner_deletion: bool | None = None
    """True if foreground deletion of the owner waits for this object."""


class ManagedFieldsEntry(Model, omit_empty=True):
    """The fields of one field manager, for server-side apply. Written by the server only."""

    manager: str = ""
    operation: str = ""
    """`Apply` or `Update`."""
    api_version: str = ""
    time: datetime | None = None
    fields_type: str = ""
    fields_v1: msgspec.Raw | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="fieldsV1")
    """The set of fields as JSON, undecoded: few readers want it and it is often larger than the object."""
    subresource: str = ""


class ObjectMeta(Model, omit_empty=True):
    """Metadata that every stored object has."""

    name: str = ""
    """Unique within a namespace (or within the cluster for cluster-scoped kinds); cannot change."""
    generate_name: str = ""
    """A prefix from which the server makes a unique name when `name` is empty."""
    namespace: str = ""
    """Empty for cluster-scoped objects."""
    uid: str = ""
    """Unique in time and space: a deleted and re-created object has another one."""
    resource_version: str = ""
    """Changes with every write; used for optimistic locking and to resume a watch."""
    generation: int = 0
    """Counts changes of the desired state; 0 where the kind does not count."""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    """Set by the server when deletion was asked for and something still holds the object."""
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []
    managed_fields: list[ManagedFieldsEntry] = []
    self_link: str = ""
    """Not sent by servers since 1.20."""

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return ObjectKey(self.namespace, self.name)


class ListMeta(Model, omit_empty=True):
    """Metadata of a list: its resourceVersion, and the token to go on when there is more."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None
    self_link: str = ""
