"""Home: the namespace of one test, with the few things that all tests do in it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Self, final
from uuid import uuid4

from kubewright import Condition, ObjectKey, controller_of, find_condition
from kubewright.client import Bookmark, HttpRequest, WatchEvent
from kubewright.k8s.core.v1 import Namespace, Pod, ServiceAccount
from kubewright.testing import RunningOperator, time_limit, until

from podset.api.v1alpha1.podset import PodSet, PodSetSpec
from podset.pods import is_active

Kubectl = Callable[..., Awaitable[str]]


@final
class Home:
    """A namespace in which the operator works."""

    def __init__(self, operator: RunningOperator, namespace: str) -> None:
        self.operator = operator
        self.client = operator.client
        self.faults = operator.faults
        self.namespace = namespace

    @classmethod
    async def new(cls, operator: RunningOperator) -> Self:
        """A namespace that nobody else uses."""
        namespace = f"home-{uuid4().hex[:8]}"
        await operator.client.create(Namespace.named(namespace))
        # Without its account a namespace takes no pods.
        await until(operator.client, ServiceAccount, ObjectKey(namespace, "default"))
        return cls(operator, namespace)

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.namespace, name)

    async def podset(self, size: int, *, name: str = "web") -> PodSet:
        """A new set, as soon as all its pods are ready."""
        await self.client.create(PodSet.named(name, self.namespace, spec=PodSetSpec(size=size)))
        return await self.settled(size, name=name)

    async def resize(self, size: int, *, name: str = "web") -> None:
        await self.client.scales.set(PodSet, name, size, namespace=self.namespace)

    async def settled(self, size: int, *, name: str = "web") -> PodSet:
        """The set, as soon as its status says that exactly that many pods are ready, and none is terminating."""
        return await self.until(
            lambda seen: (
                (seen.spec.size, seen.status.replicas, seen.status.ready_replicas) == (size, size, size)
                and seen.status.observed_generation == seen.metadata.generation
            ),
            name=name,
        )

    async def until(self, holds: Callable[[PodSet], object], *, name: str = "web") -> PodSet:
        return await until(self.client, PodSet, self.key(name), holds, timeout=60)

    async def pods(self) -> list[Pod]:
        """The pods that count, of all sets."""
        return [pod for pod in await self.client.list(Pod, namespace=self.namespace) if is_active(pod)]

    async def pods_until(self, holds: Callable[[dict[str, Pod]], object], *, seconds: float = 90) -> dict[str, Pod]:
        """All pods by name, as soon as they are as expected."""
        pods: dict[str, Pod] = {}
        try:
            async with (
                time_limit(seconds),
                self.client.watch(Pod, namespace=self.namespace, initial_events=True, bookmarks=True) as events,
            ):
                async for event in events:
                    if isinstance(event, WatchEvent):
                        pods.pop(event.object.metadata.name, None)
                        if event.type != "DELETED":
                            pods[event.object.metadata.name] = event.object
                    if holds(pods):
                        return pods
        except TimeoutError:
            raise AssertionError(f"the pods are not as expected after {seconds:g} s: {sorted(pods)}") from None
        raise AssertionError("the watch ended")

    @asynccontextmanager
    async def counting(self) -> AsyncIterator[list[int]]:
        """How many pods counted after each change, from now on to the last one before the block ends."""
        counts: list[int] = []
        active: set[str] = set()
        changed = asyncio.Condition()

        async def follow() -> None:
            complete = False
            async with self.client.watch(Pod, namespace=self.namespace, initial_events=True, bookmarks=True) as events:
                async for event in events:
                    if isinstance(event, Bookmark):
                        complete = complete or event.initial_events_end
                    elif event.type != "DELETED" and is_active(event.object):
                        active.add(event.object.metadata.uid)
                    else:
                        active.discard(event.object.metadata.uid)
                    if complete:
                        counts.append(len(active))
                        async with changed:
                            changed.notify_all()

        async def reach(holds: Callable[[], bool]) -> None:
            async with time_limit(60), changed:
                await changed.wait_for(holds)

        task = asyncio.create_task(follow())
        try:
            await reach(lambda: bool(counts))
            yield counts
            now = {pod.metadata.uid for pod in await self.pods()}
            await reach(lambda: active == now)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def writes(self, since: int, method: str = "", path: str = "") -> list[HttpRequest]:
        """What the operator has written in this namespace since so many requests, events left aside."""
        return [
            request
            for request in self.faults.requests[since:]
            if request.method != "GET"
            and f"/namespaces/{self.namespace}/" in request.path
            and not request.path.startswith("/apis/events.k8s.io/")
            and method in request.method
            and path in request.path
        ]


def condition(podset: PodSet, kind: str) -> Condition:
    found = find_condition(podset.status.conditions, kind)
    assert found is not None, f"{podset.key} has no condition {kind}"
    return found


def owner_of(pod: Pod) -> str:
    """The uid of the managing owner, or nothing."""
    reference = controller_of(pod)
    return reference.uid if reference is not None else ""


def tree(name: str, **spec: Any) -> dict[str, Any]:
    """A PodSet as a user might write it."""
    return {"apiVersion": "apps.jicki.cn/v1alpha1", "kind": "PodSet", "metadata": {"name": name}, "spec": spec}
