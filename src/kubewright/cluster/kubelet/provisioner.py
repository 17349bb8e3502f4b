"""The default StorageClass `standard` and its external provisioner, as local clusters have them.

The provisioner creates a PersistentVolume on the node that the scheduler selected, and deletes it when it is released.
Volumes have no files on disk: containers keep theirs in memory. Registered by `planes.simulated_nodes`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, final

from kubewright.api.metadata import ObjectMeta
from kubewright.client.client import Client
from kubewright.cluster.objects.volumes import (
    BIND_COMPLETED,
    IS_DEFAULT_CLASS,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    is_delayed_binding,
    requested_storage,
    storage_class_name,
)
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, controller
from kubewright.controllers.predicates import any_version
from kubewright.errors import AlreadyExists
from kubewright.k8s.core.v1 import (
    HostPathVolumeSource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from kubewright.k8s.storage.v1 import StorageClass
from kubewright.manager.runnables import Runnable

__all__ = ("PROVISIONER_NAME", "provisioner_controllers")

PROVISIONER_NAME: Final = "kubewright.io/simulated"
"""The `provisioner` of StorageClasses whose volumes this module provisions."""
_CLASS_NAME: Final = "standard"


def provisioner_controllers(client: Client) -> tuple[Runnable | Declaration[Any], ...]:
    """The StorageClass and its provisioner."""
    claims = controller(PersistentVolumeClaim, name="simulated-storage", when=any_version)(_provision)
    volumes = controller(PersistentVolume, name="simulated-storage", when=any_version)(_reclaim)
    return _StandardClass(client), claims, volumes


@final
class _StandardClass:
    """Creates the StorageClass once at start; users may change or delete it."""

    name = "standard storage class"
    needs_leader = False
    may_end = True

    def __init__(self, client: Client) -> None:
        self._client = client

    async def run(self) -> None:
        standard = StorageClass(
            metadata=ObjectMeta(name=_CLASS_NAME, annotations={IS_DEFAULT_CLASS: "true"}),
            provisioner=PROVISIONER_NAME,
            reclaim_policy="Delete",
            volume_binding_mode="WaitForFirstConsumer",
        )
        with suppress(AlreadyExists):
            await self._client.create(standard)


async def _provision(claim: PersistentVolumeClaim, ctx: Context) -> None:
    annotations = claim.metadata.annotations
    if (
        annotations.get(STORAGE_PROVISIONER) != PROVISIONER_NAME
        or claim.spec.volume_name
        or BIND_COMPLETED in annotations
    ):
        return
    storage_class = await ctx.client.find(StorageClass, storage_class_name(claim))
    node = annotations.get(SELECTED_NODE)
    if storage_class is None or (is_delayed_binding(storage_class) and node is None):
        return
    if claim.spec.selector is not None:
        prefix = f'failed to provision volume with StorageClass "{storage_class.metadata.name}": '
        ctx.event("ProvisioningFailed", prefix + "claim.Spec.Selector is not supported", type="Warning")
        return
    volume = _volume(claim, storage_class, node)
    if await ctx.client.find(PersistentVolume, volume.metadata.name) is not None:
        return
    ctx.event("Provisioning", f'External provisioner is provisioning volume for claim "{claim.key}"')
    with suppress(AlreadyExists):
        await ctx.client.create(volume)
    ctx.event("ProvisioningSucceeded", f"Successfully provisioned volume {volume.metadata.name}")


async def _reclaim(volume: PersistentVolume, ctx: Context) -> None:
    ours = volume.metadata.annotations.get(PROVISIONED_BY) == PROVISIONER_NAME
    if ours and volume.status.phase == "Released" and volume.spec.persistent_volume_reclaim_policy == "Delete":
        await ctx.delete(volume)


def _volume(claim: PersistentVolumeClaim, storage_class: StorageClass, node: str | None) -> PersistentVolume:
    name = f"pvc-{claim.metadata.uid}"
    on_node = NodeSelectorRequirement(key="kubernetes.io/hostname", operator="In", values=[node or ""])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[on_node])])
    return PersistentVolume(
        metadata=ObjectMeta(name=name, annotations={PROVISIONED_BY: PROVISIONER_NAME}),
        spec=PersistentVolumeSpec(
            access_modes=list(claim.spec.access_modes or ()),
            capacity={"storage": requested_storage(claim)},
            claim_ref=ObjectReference(
                api_version="v1",
                kind="PersistentVolumeClaim",
                namespace=claim.metadata.namespace,
                name=claim.metadata.name,
                uid=claim.metadata.uid,
                resource_version=claim.metadata.resource_version,
            ),
            host_path=HostPathVolumeSource(path=f"/simulated/{name}", type="DirectoryOrCreate"),
            mount_options=storage_class.mount_options,
            node_affinity=VolumeNodeAffinity(required=required) if node is not None else None,
            persistent_volume_reclaim_policy=storage_class.reclaim_policy or "Delete",
            storage_class_name=storage_class.metadata.name,
            volume_mode=claim.spec.volume_mode,
            volume_attributes_class_name=claim.spec.volume_attributes_class_name,
        ),
    )
