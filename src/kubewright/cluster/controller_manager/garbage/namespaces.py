"""The end of namespaces: everything in them goes first, of every kind, and what holds it up is said.

A controller of namespaces that are being deleted. Each look asks for what is left of each kind, asks for its deletion,
and writes in the conditions what remains; when nothing does, the namespace is released through its `finalize`
subresource. Pods go before all else, which they may need until they have ended. A kind that cannot be listed does not
stop the others. Registered by `housekeeping_controllers`.
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
from kubewright.cluster.controller_manager.garbage.resources import class_of, deletable_in_namespaces
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, controller
from kubewright.controllers.reconcile import Result
from kubewright.errors import ApiError, KubewrightError, MethodNotAllowed, NotFound
from kubewright.k8s.core.v1 import Namespace, NamespaceCondition

__all__ = ("NamespaceController",)

_AT_ONCE: Final = 8
_FIRST_LOOK: Final = 0.02
_LONGEST_WAIT: Final = 5.0
_FINALIZER: Final = "kubernetes"

_ALL_WELL: Final = {
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
class _Content:
    """What was found in one look."""

    def __init__(self) -> None:
        self.remaining: Counter[str] = Counter()
        self.finalizers: Counter[str] = Counter()
        self.failures: list[str] = []
        self.unknown = ""
        """Why the kinds of the server are not known."""

    @property
    def is_empty(self) -> bool:
        return not self.remaining and not self.failures and not self.unknown

    def findings(self) -> dict[str, tuple[str, str]]:
        """Reason and message of every condition that is not well."""
        found: dict[str, tuple[str, str]] = {}
        if self.unknown:
            found["NamespaceDeletionDiscoveryFailure"] = ("DiscoveryFailed", self.unknown)
        if self.failures:
            listed = ", ".join(sorted(self.failures))
            text = f"Failed to delete all resource types, {len(self.failures)} remaining: {listed}"
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
    """Empties and releases namespaces that are being deleted."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._waits: dict[str, float] = {}
        self._left: dict[str, tuple[ApiResource, ...]] = {}
        """By uid of the namespace, the kinds that were not empty at the last look. No others need a second one: in a
        namespace that is being deleted nothing can be created. None as long as some kinds are not known."""

    def declaration(self) -> Declaration[Namespace]:
        """What a manager registers."""
        return controller(Namespace, name="namespace-controller", concurrency=8, deleting=True)(self.reconcile)

    async def reconcile(self, namespace: Namespace, ctx: Context) -> Result | None:
        """One look at one namespace."""
        uid = namespace.metadata.uid
        if namespace.metadata.deletion_timestamp is None or _FINALIZER not in (namespace.spec.finalizers or ()):
            return None
        content = await self._empty(ctx.client.live, namespace)
        if content.is_empty:
            await self._release(namespace, ctx)
            self._waits.pop(uid, None)
            self._left.pop(uid, None)
            return None
        namespace.status.phase = "Terminating"
        self._say(namespace, content)
        wait = self._waits.get(uid, _FIRST_LOOK)
        self._waits[uid] = min(_LONGEST_WAIT, 2 * wait)
        return Result(requeue_after=wait)

    async def _empty(self, client: Client, namespace: Namespace) -> _Content:
        content = _Content()
        name, uid = namespace.metadata.name, namespace.metadata.uid
        try:
            resources = self._left.get(uid) or await self._resources(client, content)
        except ApiError as error:
            content.unknown = str(error)
            return content
        first = [resource for resource in resources if _is_pods(resource)]
        rest = [resource for resource in resources if not _is_pods(resource)]
        left = await self._empty_kinds(client, name, first, content)
        if left:
            self._left[uid] = (*left, *rest) if not content.unknown else ()
            return content
        if first:
            self._waits.pop(uid, None)  # what waited for the pods need not be looked at as seldom as they were
        left = await self._empty_kinds(client, name, rest, content)
        self._left[uid] = tuple(left) if not content.unknown else ()
        return content

    async def _empty_kinds(
        self, client: Client, name: str, resources: Sequence[ApiResource], content: _Content
    ) -> list[ApiResource]:
        """Those of the kinds that are not empty yet."""
        room = asyncio.Semaphore(_AT_ONCE)
        left: list[ApiResource] = []

        async def one(resource: ApiResource) -> None:
            async with room:
                try:
                    if not await self._empty_of(client, name, resource, content):
                        left.append(resource)
                except (NotFound, MethodNotAllowed):
                    return  # the kind has gone meanwhile
                except KubewrightError as error:
                    content.failures.append(str(error))
                    left.append(resource)

        await asyncio.gather(*(one(resource) for resource in resources))
        return left

    @staticmethod
    async def _resources(client: Client, content: _Content) -> tuple[ApiResource, ...]:
        # Asked for anew: a kind defined a moment ago has to be emptied too.
        resource_list = await client.discovery.resources(refresh=True)
        if resource_list.stale:
            content.unknown = _undiscovered([version.api_version for version in resource_list.stale])
        return deletable_in_namespaces(resource_list)

    @staticmethod
    async def _empty_of(client: Client, name: str, resource: ApiResource, content: _Content) -> bool:
        """Ask for the deletion of all of a kind; whether none is left."""
        kind = class_of(resource)
        left = await client.list(kind, namespace=name)
        if any(item.metadata.deletion_timestamp is None for item in left):
            if "deletecollection" in resource.verbs:
                await client.delete_collection(kind, namespace=name, propagation="Background")
            else:
                for item in left:
                    await client.delete(kind, item.key, uid=item.metadata.uid, propagation="Background")
            left = await client.list(kind, namespace=name)
        if left.items:
            content.remaining[f"{resource.gvr.resource}.{resource.gvr.group}"] = len(left.items)
        content.finalizers.update(finalizer for item in left for finalizer in item.metadata.finalizers)
        return not left.items

    def _say(self, namespace: Namespace, content: _Content) -> None:
        """Into the conditions; they are written after the run, if they changed."""
        findings = content.findings()
        now = self._clock.now().replace(microsecond=0)
        before: Sequence[NamespaceCondition] = namespace.status.conditions or ()
        known = {condition.type: condition for condition in before}
        conditions = [condition for condition in before if condition.type not in _ALL_WELL]
        for kind, well in _ALL_WELL.items():
            status = "True" if kind in findings else "False"
            reason, message = findings.get(kind, well)
            present = known.get(kind)
            same = present is not None and present.status == status
            since = present.last_transition_time if present is not None and same else now
            conditions.append(
                NamespaceCondition(type=kind, status=status, reason=reason, message=message, last_transition_time=since)
            )
        namespace.status.conditions = conditions

    @staticmethod
    async def _release(namespace: Namespace, ctx: Context) -> None:
        namespace.spec.finalizers = [item for item in namespace.spec.finalizers or () if item != _FINALIZER]
        with suppress(NotFound):
            await ctx.client.update(namespace, subresource="finalize")


def _is_pods(resource: ApiResource) -> bool:
    return resource.gvr.group == "" and resource.gvr.resource == "pods"


def _undiscovered(versions: list[str]) -> str:
    """As client-go says it: what extension servers hold that do not answer is not known."""
    listed = ", ".join(f"{version}: stale GroupVersion discovery: {version}" for version in sorted(versions))
    told = f"unable to retrieve the complete list of server APIs: {listed}"
    return f"Discovery failed for some groups, {len(versions)} failing: {told}"
