"""ResourceClaimController: generates ResourceClaims from templates and releases claims that no pod uses.

It reconciles pods and claims. A generated claim belongs to its pod, and the pod's status names it. `reservedFor` lists
the pods that use a claim: finished and deleted pods are removed from it; with the last one the claim is deallocated,
and a generated claim deleted. `scheduler.devices` allocates devices. After pkg/controller/resourceclaim/controller.go,
with the same messages. Registered by `controllers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, final

from kubewright.api.codec import copy_of, to_tree
from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.owners import controller_of, owner_reference
from kubewright.cache.changes import Change
from kubewright.cluster.objects.resource_claims import (
    FINALIZER,
    POD_CLAIM_NAME,
    PodClaim,
    claim_keys,
    consumer_reference,
    has_claims,
    is_pod_done,
    ownership_error,
    pod_claims,
)
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.predicates import any_version
from kubewright.errors import ApiError, NotFound
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.resource.v1 import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate

__all__ = ("ResourceClaimController", "base_name")

_NAME: Final = "resourceclaim-controller"
_POD_OWNER_INDEX: Final = "resource claims: pod"
_MAX_BASE_LENGTH: Final = 57
"""The maximum length of generateName; the server appends up to six characters."""


@final
class ResourceClaimController:
    """Syncs pods with ResourceClaims, and the claims."""

    def __init__(self) -> None:
        self._pods_by_claim: dict[ObjectKey, set[ObjectKey]] = {}
        """The pods of each claim."""

    def declarations(self) -> tuple[Declaration[Any], ...]:
        """The controllers to register with a manager."""
        pods = controller(
            Pod,
            name=_NAME,
            when=has_claims,
            watches=[Watch(ResourceClaim, self._claim_changed)],
        )(self.sync_pod)
        claims = controller(
            ResourceClaim,
            name=_NAME,
            when=any_version,
            indexes={_POD_OWNER_INDEX: _pod_owner_uid},
            watches=[Watch(Pod, self._pod_changed, when=has_claims)],
            deleting=True,
        )(self.sync_claim)
        return pods, claims

    # --- pods ---

    async def sync_pod(self, pod: Pod, ctx: Context) -> None:
        """Generate the claims of a pod; reserve them if it was bound without the scheduler."""
        if is_pod_done(pod):
            return  # a claim created now would be deleted at once
        generated: dict[str, str] = {}
        for pod_claim in pod_claims(pod):
            try:
                name = await _ensure_claim(pod, pod_claim, ctx)
            except ApiError as error:
                message = f"PodResourceClaim {pod_claim.entry}: {_creation_error(pod_claim, error)}"
                ctx.event("FailedResourceClaimCreation", message, type="Warning")
                raise
            if name:
                generated[pod_claim.entry] = name
        if generated:
            statuses = [{"name": entry, "resourceClaimName": name} for entry, name in generated.items()]
            patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"resourceClaimStatuses": statuses}}
            with suppress(NotFound):
                await ctx.client.patch_by_name(Pod, pod.key, patch, patch_type="strategic", subresource="status")
        elif pod.spec.node_name:
            await _reserve_for_pod(pod, ctx)

    # --- claims ---

    async def sync_claim(self, claim: ResourceClaim, ctx: Context) -> None:
        """Remove finished pods from `reservedFor`, and deallocate the claim with the last of them."""
        reserved = claim.status.reserved_for or []
        if any(each.api_group or each.resource != "pods" for each in reserved):
            ctx.log.warning("the claim is reserved for something other than a pod; it is ignored")
            return
        valid = [each for each in reserved if await _is_valid_reservation(claim, each, ctx)]
        protected = FINALIZER in claim.metadata.finalizers
        terminating = claim.metadata.deletion_timestamp is not None
        with suppress(NotFound):
            if len(valid) < len(reserved):
                updated = await _update_reservations(claim, valid, ctx, deallocate=protected and not valid)
                if updated.status.allocation is None:
                    await _remove_finalizer(updated, ctx)
            elif protected and terminating and not valid:
                if claim.status.allocation is not None:
                    claim = await _update_reservations(claim, valid, ctx, deallocate=True)
                await _remove_finalizer(claim, ctx)
        if not valid and not terminating:
            await _delete_unused_claim(claim, ctx)

    # --- event handlers ---

    def _pod_changed(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """The claims of a finished or deleted pod."""
        pod = change.new or change.old
        assert pod is not None
        now = claim_keys(pod)
        before = claim_keys(change.old) if change.old is not None else frozenset()
        for key in before if change.new is None else before - now:
            pods = self._pods_by_claim.get(key)
            if pods is not None:
                pods.discard(change.key)
                if not pods:
                    del self._pods_by_claim[key]
        if change.new is None:
            return now
        for key in now:
            self._pods_by_claim.setdefault(key, set()).add(change.key)
        return now if is_pod_done(pod) else ()

    def _claim_changed(self, change: Change[ResourceClaim]) -> Iterable[ObjectKey]:
        return tuple(self._pods_by_claim.get(change.key, ()))


async def _ensure_claim(pod: Pod, pod_claim: PodClaim, ctx: Context) -> str:
    """Create the claim of an entry if there is none; its name if the pod's status lacks it, else empty."""
    namespace = pod.metadata.namespace
    if pod_claim.name:
        existing = await ctx.client.find(ResourceClaim, ObjectKey(namespace, pod_claim.name))
        if not pod_claim.template or (existing is not None and not ownership_error(existing, pod)):
            return ""
    owned = await ctx.client.list(ResourceClaim, namespace=namespace, index=(_POD_OWNER_INDEX, pod.metadata.uid))
    for claim in owned:
        # Created by an earlier sync that could not write the pod's status.
        if claim.metadata.annotations.get(POD_CLAIM_NAME) == pod_claim.entry:
            return claim.metadata.name if claim.metadata.name != pod_claim.name else ""
    template = await ctx.client.live.get(ResourceClaimTemplate, ObjectKey(namespace, pod_claim.template))
    return (await ctx.client.create(_claim(pod, pod_claim, template))).metadata.name


def _creation_error(pod_claim: PodClaim, error: ApiError) -> str:
    if isinstance(error, NotFound):
        kind = "resourceclaimtemplate.resource.k8s.io"
        return f'resource claim template "{pod_claim.template}": {kind} "{pod_claim.template}" not found'
    return f"create ResourceClaim : {error.message}"


def _claim(pod: Pod, pod_claim: PodClaim, template: ResourceClaimTemplate) -> ResourceClaim:
    metadata = template.spec.metadata
    annotations = dict(metadata.annotations) if metadata is not None else {}
    return ResourceClaim(
        metadata=ObjectMeta(
            generate_name=base_name(pod.metadata.name, pod_claim.entry),
            namespace=pod.metadata.namespace,
            labels=dict(metadata.labels) if metadata is not None else {},
            annotations=annotations | {POD_CLAIM_NAME: pod_claim.entry},
            owner_references=[owner_reference(pod, controller=True)],
        ),
        spec=copy_of(template.spec.spec),
    )


def base_name(pod: str, entry: str) -> str:
    """The generateName of a claim; both parts of a long name are shortened in proportion."""
    full = f"{pod}-{entry}-"
    if len(full) <= _MAX_BASE_LENGTH:
        return full
    return f"{pod[: len(pod) * _MAX_BASE_LENGTH // len(full)]}-{entry[: len(entry) * _MAX_BASE_LENGTH // len(full)]}"


async def _reserve_for_pod(pod: Pod, ctx: Context) -> None:
    """Reserve allocated claims for a pod that was bound without the scheduler, which otherwise reserves them."""
    for pod_claim in pod_claims(pod):
        key = ObjectKey(pod.metadata.namespace, pod_claim.name)
        claim = await ctx.client.find(ResourceClaim, key) if pod_claim.name else None
        if claim is None or (pod_claim.template and ownership_error(claim, pod)):
            return
        reserved = claim.status.reserved_for or []
        if claim.status.allocation is None or any(each.uid == pod.metadata.uid for each in reserved):
            continue
        patch = {
            "metadata": {"resourceVersion": claim.metadata.resource_version},
            "status": {"reservedFor": [*map(to_tree, reserved), consumer_reference(pod)]},
        }
        await ctx.client.patch_by_name(ResourceClaim, key, patch, subresource="status")


async def _is_valid_reservation(claim: ResourceClaim, consumer: ResourceClaimConsumerReference, ctx: Context) -> bool:
    key = ObjectKey(claim.metadata.namespace, consumer.name)
    pod = await ctx.client.find(Pod, key)
    if pod is not None:
        return pod.metadata.uid == consumer.uid and not is_pod_done(pod)
    # The cache may not have the pod yet: it must not lose the reservation that the scheduler just made.
    pod = await ctx.client.live.find(Pod, key)
    return pod is not None and pod.metadata.uid == consumer.uid


async def _update_reservations(
    claim: ResourceClaim, valid: list[ResourceClaimConsumerReference], ctx: Context, *, deallocate: bool
) -> ResourceClaim:
    status: dict[str, Any] = {"reservedFor": [to_tree(each) for each in valid] or None}
    if deallocate:
        status["allocation"] = None
    patch = {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}
    return await ctx.client.patch_by_name(ResourceClaim, claim.key, patch, subresource="status")


async def _remove_finalizer(claim: ResourceClaim, ctx: Context) -> None:
    if FINALIZER not in claim.metadata.finalizers:
        return
    remaining = [each for each in claim.metadata.finalizers if each != FINALIZER]
    patch = {"metadata": {"resourceVersion": claim.metadata.resource_version, "finalizers": remaining or None}}
    await ctx.client.patch_by_name(ResourceClaim, claim.key, patch)


async def _delete_unused_claim(claim: ResourceClaim, ctx: Context) -> None:
    """Delete a generated claim whose pod is done; the garbage collector would wait for the deletion of the pod."""
    owner = controller_of(claim)
    if owner is None or (owner.api_version, owner.kind) != ("v1", "Pod"):
        return
    pod = await ctx.client.find(Pod, ObjectKey(claim.metadata.namespace, owner.name))
    if pod is not None and (pod.metadata.uid != owner.uid or is_pod_done(pod)):
        await ctx.delete(claim)


def _pod_owner_uid(claim: ResourceClaim) -> Iterable[str]:
    owner = controller_of(claim)
    return (owner.uid,) if owner is not None and (owner.api_version, owner.kind) == ("v1", "Pod") else ()
