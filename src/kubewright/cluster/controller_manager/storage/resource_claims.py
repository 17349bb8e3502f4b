"""Makes the ResourceClaims that pods have templates for, and lets go of claims that no pod uses any more.

Two controllers, one of pods and one of claims, with the rules and words of kube-controller-manager's. A generated claim
belongs to its pod and is named in the pod's status. A claim is held by the pods in `reservedFor`: those that are done
or gone are taken off, with the last one goes the allocation, and a generated claim is deleted with it. Devices are
given by the scheduler of `nodes`. Registered by `housekeeping_controllers`.
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

__all__ = ("ResourceClaims", "base_name")

_NAME: Final = "resourceclaim-controller"
_BY_OWNER: Final = "resource claims: pod"
_LONGEST: Final = 57
"""Of what a name is generated from: a hyphen and five letters are to fit in as well."""


@final
class ResourceClaims:
    """One for a cluster."""

    def __init__(self) -> None:
        self._users: dict[ObjectKey, set[ObjectKey]] = {}
        """Pods by their claims."""

    def declarations(self) -> tuple[Declaration[Any], ...]:
        """What a manager registers."""
        pods = controller(
            Pod,
            name=_NAME,
            when=has_claims,
            watches=[Watch(ResourceClaim, self._on_claim)],
        )(self.look_at_pod)
        claims = controller(
            ResourceClaim,
            name=_NAME,
            when=any_version,
            indexes={_BY_OWNER: _owning_pod},
            watches=[Watch(Pod, self._on_pod, when=has_claims)],
            deleting=True,
        )(self.look_at_claim)
        return pods, claims

    # --- pods ---

    async def look_at_pod(self, pod: Pod, ctx: Context) -> None:
        """Make the claims of a pod; hold them for it if it did not need the scheduler."""
        if is_pod_done(pod):
            return  # a claim made now would be deleted at once
        made: dict[str, str] = {}
        for wanted in pod_claims(pod):
            try:
                name = await _see_to(pod, wanted, ctx)
            except ApiError as error:
                sentence = f"PodResourceClaim {wanted.entry}: {_why(wanted, error)}"
                ctx.event("FailedResourceClaimCreation", sentence, type="Warning")
                raise
            if name:
                made[wanted.entry] = name
        if made:
            statuses = [{"name": entry, "resourceClaimName": name} for entry, name in made.items()]
            patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"resourceClaimStatuses": statuses}}
            with suppress(NotFound):
                await ctx.client.patch_by_name(Pod, pod.key, patch, form="strategic", subresource="status")
        elif pod.spec.node_name:
            await _hold(pod, ctx)

    # --- claims ---

    async def look_at_claim(self, claim: ResourceClaim, ctx: Context) -> None:
        """Take off the pods that are done, and with the last of them the allocation."""
        reserved = claim.status.reserved_for or []
        if any(each.api_group or each.resource != "pods" for each in reserved):
            ctx.log.warning("a claim is reserved for something else than a pod; it is left alone")
            return
        valid = [each for each in reserved if await _still_uses(claim, each, ctx)]
        protected = FINALIZER in claim.metadata.finalizers
        leaving = claim.metadata.deletion_timestamp is not None
        with suppress(NotFound):
            if len(valid) < len(reserved):
                freed = await _keep_only(claim, valid, ctx, deallocate=protected and not valid)
                if freed.status.allocation is None:
                    await _unprotect(freed, ctx)
            elif protected and leaving and not valid:
                if claim.status.allocation is not None:
                    claim = await _keep_only(claim, valid, ctx, deallocate=True)
                await _unprotect(claim, ctx)
        if not valid and not leaving:
            await _delete_if_needless(claim, ctx)

    # --- who is concerned ---

    def _on_pod(self, change: Change[Pod]) -> Iterable[ObjectKey]:
        """The claims of a pod that needs them no more."""
        pod = change.new or change.old
        assert pod is not None
        now = claim_keys(pod)
        before = claim_keys(change.old) if change.old is not None else frozenset()
        for key in before if change.new is None else before - now:
            users = self._users.get(key)
            if users is not None:
                users.discard(change.key)
                if not users:
                    del self._users[key]
        if change.new is None:
            return now
        for key in now:
            self._users.setdefault(key, set()).add(change.key)
        return now if is_pod_done(pod) else ()

    def _on_claim(self, change: Change[ResourceClaim]) -> Iterable[ObjectKey]:
        return tuple(self._users.get(change.key, ()))


async def _see_to(pod: Pod, wanted: PodClaim, ctx: Context) -> str:
    """Make a claim if there is none; its name if the pod's status does not have it yet."""
    namespace = pod.metadata.namespace
    if wanted.name:
        present = await ctx.client.find(ResourceClaim, ObjectKey(namespace, wanted.name))
        if not wanted.template or (present is not None and not ownership_error(present, pod)):
            return ""
    owned = await ctx.client.list(ResourceClaim, namespace=namespace, index=(_BY_OWNER, pod.metadata.uid))
    for claim in owned:
        # Made before, but the pod's status could not be written.
        if claim.metadata.annotations.get(POD_CLAIM_NAME) == wanted.entry:
            return claim.metadata.name if claim.metadata.name != wanted.name else ""
    template = await ctx.client.live.get(ResourceClaimTemplate, ObjectKey(namespace, wanted.template))
    return (await ctx.client.create(_claim(pod, wanted, template))).metadata.name


def _why(wanted: PodClaim, error: ApiError) -> str:
    if isinstance(error, NotFound):
        kind = "resourceclaimtemplate.resource.k8s.io"
        return f'resource claim template "{wanted.template}": {kind} "{wanted.template}" not found'
    return f"create ResourceClaim : {error.message}"


def _claim(pod: Pod, wanted: PodClaim, template: ResourceClaimTemplate) -> ResourceClaim:
    metadata = template.spec.metadata
    annotations = dict(metadata.annotations) if metadata is not None else {}
    return ResourceClaim(
        metadata=ObjectMeta(
            generate_name=base_name(pod.metadata.name, wanted.entry),
            namespace=pod.metadata.namespace,
            labels=dict(metadata.labels) if metadata is not None else {},
            annotations=annotations | {POD_CLAIM_NAME: wanted.entry},
            owner_references=[owner_reference(pod, controller=True)],
        ),
        spec=copy_of(template.spec.spec),
    )


def base_name(pod: str, entry: str) -> str:
    """What the name of a claim begins with; of long names each part is shortened, so that something of both is left."""
    whole = f"{pod}-{entry}-"
    if len(whole) <= _LONGEST:
        return whole
    return f"{pod[: len(pod) * _LONGEST // len(whole)]}-{entry[: len(entry) * _LONGEST // len(whole)]}"


async def _hold(pod: Pod, ctx: Context) -> None:
    """Reserve allocated claims for a pod that has a node; the scheduler does so for those it gives one."""
    for wanted in pod_claims(pod):
        key = ObjectKey(pod.metadata.namespace, wanted.name)
        claim = await ctx.client.find(ResourceClaim, key) if wanted.name else None
        if claim is None or (wanted.template and ownership_error(claim, pod)):
            return
        reserved = claim.status.reserved_for or []
        if claim.status.allocation is None or any(each.uid == pod.metadata.uid for each in reserved):
            continue
        patch = {
            "metadata": {"resourceVersion": claim.metadata.resource_version},
            "status": {"reservedFor": [*map(to_tree, reserved), consumer_reference(pod)]},
        }
        await ctx.client.patch_by_name(ResourceClaim, key, patch, subresource="status")


async def _still_uses(claim: ResourceClaim, user: ResourceClaimConsumerReference, ctx: Context) -> bool:
    key = ObjectKey(claim.metadata.namespace, user.name)
    pod = await ctx.client.find(Pod, key)
    if pod is not None:
        return pod.metadata.uid == user.uid and not is_pod_done(pod)
    # It may be too new to be known here, and must not lose what the scheduler has just given it.
    pod = await ctx.client.live.find(Pod, key)
    return pod is not None and pod.metadata.uid == user.uid


async def _keep_only(
    claim: ResourceClaim, valid: list[ResourceClaimConsumerReference], ctx: Context, *, deallocate: bool
) -> ResourceClaim:
    status: dict[str, Any] = {"reservedFor": [to_tree(each) for each in valid] or None}
    if deallocate:
        status["allocation"] = None
    patch = {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}
    return await ctx.client.patch_by_name(ResourceClaim, claim.key, patch, subresource="status")


async def _unprotect(claim: ResourceClaim, ctx: Context) -> None:
    if FINALIZER not in claim.metadata.finalizers:
        return
    left = [each for each in claim.metadata.finalizers if each != FINALIZER]
    patch = {"metadata": {"resourceVersion": claim.metadata.resource_version, "finalizers": left or None}}
    await ctx.client.patch_by_name(ResourceClaim, claim.key, patch)


async def _delete_if_needless(claim: ResourceClaim, ctx: Context) -> None:
    """Of a generated claim whose pod will not run; the garbage collector would wait until the pod is deleted."""
    owner = controller_of(claim)
    if owner is None or (owner.api_version, owner.kind) != ("v1", "Pod"):
        return
    pod = await ctx.client.find(Pod, ObjectKey(claim.metadata.namespace, owner.name))
    if pod is not None and (pod.metadata.uid != owner.uid or is_pod_done(pod)):
        await ctx.delete(claim)


def _owning_pod(claim: ResourceClaim) -> Iterable[str]:
    owner = controller_of(claim)
    return (owner.uid,) if owner is not None and (owner.api_version, owner.kind) == ("v1", "Pod") else ()
