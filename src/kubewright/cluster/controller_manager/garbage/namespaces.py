"""NamespaceController: deletes the contents of terminating namespaces and then finalizes them.

Each reconcile deletes the remaining objects of every namespaced resource and writes what remains into the conditions;
when nothing remains, it removes the finalizer through the subresource `finalize`. Pods are deleted before everything
else, because they may need other objects until they have ended. A resource that cannot be listed does not stop the
others. After pkg/controller/namespace/deletion/namespaced_resources_deleter.go. Registered by `controllers`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.client.client import Client
from kubewright.client.discovery import ApiResource
from kubewright.cluster.controller_manager.garbage.resources import deletable_namespaced_resources, metadata_class
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, controller
from kubewright.controllers.reconcile import Result
from kubewright.errors import ApiError, KubewrightError, MethodNotAllowed, NotFound
from kubewright.k8s.core.v1 import Namespace, NamespaceCondition

__all__ = ("NamespaceController",)

_CONCURRENCY: Final = 8
_MIN_DELAY: Final = 0.02
_MAX_DELAY: Final = 5.0
_FINALIZER: Final = "kubernetes"

_OK_CONDITIONS: Final = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@final
class _DeletionResult:
    """The result of one attempt to delete the contents of a namespace."""

    def __init__(self) -> None:
        self.remaining: Counter[str] = Counter()
        self.finalizers: Counter[str] = Counter()
        self.deletion_errors: list[str] = []
        self.discovery_error = ""
        """Why discovery is incomplete; empty if it is complete."""

    @property
    def is_empty(self) -> bool:
        return not self.remaining and not self.deletion_errors and not self.discovery_error

    def failed_conditions(self) -> dict[str, tuple[str, str]]:
        """Reason and message of each condition that is True."""
        found: dict[str, tuple[str, str]] = {}
        if self.discovery_error:
            found["NamespaceDeletionDiscoveryFailure"] = ("DiscoveryFailed", self.discovery_error)
        if self.deletion_errors:
            listed = ", ".join(sorted(self.deletion_errors))
            text = f"Failed to delete all resource types, {len(self.deletion_errors)} remaining: {listed}"
            found["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", text)
        if self.remaining:
            listed = ", ".join(
                sorted(f"{name} has {number} resource instances" for name, number in self.remaining.items())
            )
            found["NamespaceContentRemaining"] = ("SomeResourcesRemain", f"Some resources are remaining: {listed}")
        if self.finalizers:
            listed = ", ".join(
                sorted(f"{name} in {number} resource instances" for name, number in self.finalizers.items())
            )
            text = f"Some content in the namespace has finalizers remaining: {listed}"
            found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", text)
        return found


@final
class NamespaceController:
    """Deletes the contents of terminating namespaces and finalizes them."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._delays: dict[str, float] = {}
        self._remaining_resources: dict[str, tuple[ApiResource, ...]] = {}
        """By uid of the namespace, the resources that were not empty in the last attempt. Only these are retried:
        nothing can be created in a terminating namespace. Empty while discovery is incomplete."""

    def declaration(self) -> Declaration[Namespace]:
        """The controller to register with a manager."""
        return controller(Namespace, name="namespace-controller", concurrency=8, deleting=True)(self.reconcile)

    async def reconcile(self, namespace: Namespace, ctx: Context) -> Result | None:
        """Sync one namespace."""
        uid = namespace.metadata.uid
        if namespace.metadata.deletion_timestamp is None or _FINALIZER not in (namespace.spec.finalizers or ()):
            return None
        result = await self._delete_all_content(ctx.client.live, namespace)
        if result.is_empty:
            await self._finalize(namespace, ctx)
            self._delays.pop(uid, None)
            self._remaining_resources.pop(uid, None)
            return None
        namespace.status.phase = "Terminating"
        self._set_conditions(namespace, result)
        delay = self._delays.get(uid, _MIN_DELAY)
        self._delays[uid] = min(_MAX_DELAY, 2 * delay)
        return Result(requeue_after=delay)

    async def _delete_all_content(self, client: Client, namespace: Namespace) -> _DeletionResult:
        result = _DeletionResult()
        name, uid = namespace.metadata.name, namespace.metadata.uid
        try:
            resources = self._remaining_resources.get(uid) or await self._resources(client, result)
        except ApiError as error:
            result.discovery_error = str(error)
            return result
        first = [resource for resource in resources if _is_pods(resource)]
        rest = [resource for resource in resources if not _is_pods(resource)]
        remaining_items = await self._delete_resources(client, name, first, result)
        if remaining_items:
            self._remaining_resources[uid] = (*remaining_items, *rest) if not result.discovery_error else ()
            return result
        if first:
            self._delays.pop(uid, None)  # the pods have ended: retry the rest without their back-off
        remaining_items = await self._delete_resources(client, name, rest, result)
        self._remaining_resources[uid] = tuple(remaining_items) if not result.discovery_error else ()
        return result

    async def _delete_resources(
        self, client: Client, name: str, resources: Sequence[ApiResource], result: _DeletionResult
    ) -> list[ApiResource]:
        """Delete all objects of the resources; the resources that still have some."""
        semaphore = asyncio.Semaphore(_CONCURRENCY)
        remaining_items: list[ApiResource] = []

        async def delete_one(resource: ApiResource) -> None:
            async with semaphore:
                try:
                    if not await self._delete_all_of_resource(client, name, resource, result):
                        remaining_items.append(resource)
                except (NotFound, MethodNotAllowed):
                    return  # the resource is not served any more
                except KubewrightError as error:
                    result.deletion_errors.append(str(error))
                    remaining_items.append(resource)

        await asyncio.gather(*(delete_one(resource) for resource in resources))
        return remaining_items

    @staticmethod
    async def _resources(client: Client, result: _DeletionResult) -> tuple[ApiResource, ...]:
        # Refresh: a custom resource may have been defined a moment ago.
        api_resources = await client.discovery.resources(refresh=True)
        if api_resources.stale:
            result.discovery_error = _discovery_error([version.api_version for version in api_resources.stale])
        return deletable_namespaced_resources(api_resources)

    @staticmethod
    async def _delete_all_of_resource(
        client: Client, name: str, resource: ApiResource, result: _DeletionResult
    ) -> bool:
        """Delete all objects of one resource; whether none remains."""
        kind = metadata_class(resource)
        remaining_items = await client.list(kind, namespace=name)
        if any(item.metadata.deletion_timestamp is None for item in remaining_items):
            if "deletecollection" in resource.verbs:
                await client.delete_collection(kind, namespace=name, propagation="Background")
            else:
                for item in remaining_items:
                    await client.delete(kind, item.key, uid=item.metadata.uid, propagation="Background")
            remaining_items = await client.list(kind, namespace=name)
        if remaining_items.items:
            result.remaining[f"{resource.gvr.resource}.{resource.gvr.group}"] = len(remaining_items.items)
        result.finalizers.update(finalizer for item in remaining_items for finalizer in item.metadata.finalizers)
        return not remaining_items.items

    def _set_conditions(self, namespace: Namespace, result: _DeletionResult) -> None:
        """Set the conditions; the framework writes them after the reconcile if they changed."""
        failed_conditions = result.failed_conditions()
        now = self._clock.now().replace(microsecond=0)
        existing: Sequence[NamespaceCondition] = namespace.status.conditions or ()
        previous_conditions = {condition.type: condition for condition in existing}
        conditions = [condition for condition in existing if condition.type not in _OK_CONDITIONS]
        for kind, ok_condition in _OK_CONDITIONS.items():
            status = "True" if kind in failed_conditions else "False"
            reason, message = failed_conditions.get(kind, ok_condition)
            previous = previous_conditions.get(kind)
            same = previous is not None and previous.status == status
            since = previous.last_transition_time if previous is not None and same else now
            conditions.append(
                NamespaceCondition(type=kind, status=status, reason=reason, message=message, last_transition_time=since)
            )
        namespace.status.conditions = conditions

    @staticmethod
    async def _finalize(namespace: Namespace, ctx: Context) -> None:
        namespace.spec.finalizers = [item for item in namespace.spec.finalizers or () if item != _FINALIZER]
        with suppress(NotFound):
            await ctx.client.update(namespace, subresource="finalize")


def _is_pods(resource: ApiResource) -> bool:
    return resource.gvr.group == "" and resource.gvr.resource == "pods"


def _discovery_error(versions: list[str]) -> str:
    """The message of client-go for aggregated API servers that do not respond."""
    listed = ", ".join(f"{version}: stale GroupVersion discovery: {version}" for version in sorted(versions))
    error = f"unable to retrieve the complete list of server APIs: {listed}"
    return f"Discovery failed for some groups, {len(versions)} failing: {error}"
