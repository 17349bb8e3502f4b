"""What a test on a cluster works with: a namespace, a label that no other test has, and short ways to sets and pods."""

import json
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, TypeVar

from kubewright import Client, ObjectKey, find_condition
from kubewright.api import KubeObject, from_tree
from kubewright.k8s.apps.v1 import ReplicaSet
from kubewright.k8s.core.v1 import Namespace, Pod, ServiceAccount
from kubewright.k8s.events.v1 import Event
from kubewright.testing import RunningOperator, gone, until

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.census import is_ready

K = TypeVar("K", bound=KubeObject)
Tree = dict[str, Any]

_numbers = count(1)

LOG = {"name": "log", "image": "fluent-bit:3.1"}


class Home:
    """One test's corner of the cluster."""

    def __init__(self, client: Client, number: int) -> None:
        self.client = client
        self.namespace = f"home-{number}"
        self.labels = {"app": f"app-{number}"}
        self.number = number
        self._sets: set[str] = set()
        self._namespaces: set[str] = set()

    @classmethod
    async def new(cls, client: Client) -> "Home":
        home = cls(client, next(_numbers))
        await home.make_namespace(home.namespace)
        return home

    async def leave(self, operator: RunningOperator | None = None) -> None:
        """Nothing of the test gets in the way of the next one, which has the operator as well."""
        self.client = self.client if operator is None else operator.client
        for name in self._sets:
            if (found := await self.client.find(SidecarSet, name)) is not None:
                if operator is not None and found.metadata.deletion_timestamp is None:
                    await operator.until_cached(SidecarSet, name, bool)  # else it may be yet to come there
                await self.client.delete(found)
                await gone(self.client, SidecarSet, name)
            if operator is not None:
                await operator.until_cached(SidecarSet, name, lambda seen: seen is None)
        for name in self._namespaces:
            await self.client.delete(Namespace, name)

    async def make_namespace(self, name: str, **labels: str) -> Namespace:
        """A namespace in which pods can be made."""
        self._namespaces.add(name)
        tree = {"metadata": {"name": name, "labels": {key.replace("__", "/"): word for key, word in labels.items()}}}
        made = await self.client.create(from_tree(Namespace, tree))
        await until(self.client, ServiceAccount, ObjectKey(name, "default"))
        return made

    async def make(self, kind: type[K], name: str, spec: Tree) -> K:
        """An object of another kind in the namespace of the test."""
        tree = {"metadata": {"name": name, "namespace": self.namespace}, "spec": spec}
        return await self.client.create(from_tree(kind, tree))

    # --- sets ---

    def name(self, name: str) -> str:
        """What a set of this test is called; sets live in no namespace."""
        return f"{name}-{self.number}"

    def sidecarset(self, name: str = "logs", **spec: Any) -> SidecarSet:
        """A set for the pods of this test, not created yet."""
        self._sets.add(self.name(name))
        tree = {"selector": {"matchLabels": self.labels}, "containers": [LOG], **spec}
        return from_tree(SidecarSet, {"metadata": {"name": self.name(name)}, "spec": tree})

    async def make_set(self, name: str = "logs", **spec: Any) -> SidecarSet:
        """A set that the operator has seen, so that the next pod is injected."""
        return await self.seen(await self.client.create(self.sidecarset(name, **spec)))

    async def make_together(self, operator: RunningOperator, *sets: SidecarSet) -> list[SidecarSet]:
        """Sets as if they had been created at the same moment: each is checked before the others are seen."""
        operator.faults.hold_streams()
        made = [await self.client.create(item) for item in sets]
        operator.faults.release_streams()
        return [await self.seen(item) for item in made]

    async def change(self, sidecarset: SidecarSet, **spec: Any) -> SidecarSet:
        """Change parts of a set; as the operator has seen it."""
        return await self.seen(await self.client.patch_by_name(SidecarSet, sidecarset.key, {"spec": spec}))

    async def seen(self, sidecarset: SidecarSet) -> SidecarSet:
        """The set once its status is about its spec."""
        return await self.until_set(
            sidecarset, lambda now: now.status.observed_generation == sidecarset.metadata.generation
        )

    async def until_set(self, sidecarset: SidecarSet, holds: Callable[[SidecarSet], object]) -> SidecarSet:
        return await until(self.client, SidecarSet, sidecarset.key, holds, timeout=60)

    async def counted(self, sidecarset: SidecarSet, matched: int, updated: int, ready: int) -> SidecarSet:
        """The set once its three columns are these."""

        def holds(now: SidecarSet) -> bool:
            status = now.status
            return (status.matched_pods, status.updated_pods, status.ready_pods) == (matched, updated, ready)

        return await self.until_set(sidecarset, holds)

    # --- pods ---

    def pod(self, name: str = "web", namespace: str = "", **fields: Any) -> Pod:
        """A pod that this test's sets select, not created yet."""
        annotations, labels = fields.pop("annotations", {}), fields.pop("labels", self.labels)
        metadata = {
            "name": name,
            "namespace": namespace or self.namespace,
            "labels": labels,
            "annotations": annotations,
        }
        spec = {"containers": [{"name": "main", "image": "nginx:1.27"}], "terminationGracePeriodSeconds": 0, **fields}
        return from_tree(Pod, {"metadata": metadata, "spec": spec})

    async def make_pod(self, name: str = "web", namespace: str = "", **fields: Any) -> Pod:
        return await self.client.create(self.pod(name, namespace, **fields))

    async def ready_pods(self, number: int, **fields: Any) -> list[Pod]:
        """So many pods, ready."""
        made = [await self.make_pod(f"web-{index}", **fields) for index in range(number)]
        return [await until(self.client, Pod, pod.key, is_ready, timeout=60) for pod in made]

    async def make_replicaset(self, name: str, template: Tree, *, replicas: int) -> ReplicaSet:
        """An owner that makes pods, and makes them anew."""
        spec = {"replicas": replicas, "selector": {"matchLabels": self.labels}, "template": template}
        metadata = {"name": name, "namespace": self.namespace}
        return await self.client.create(from_tree(ReplicaSet, {"metadata": metadata, "spec": spec}))

    async def event_on(self, namespace: str, name: str, reason: str) -> Event:
        """The event with that reason on that object, as soon as it is there."""
        async with self.client.watch(Event, namespace=namespace or "default", initial_events=True) as events:
            async for event in events:
                about = event.object.regarding
                if about is not None and about.name == name and event.object.reason == reason:
                    return event.object
        raise AssertionError(f"there is no event {reason} on {name}")

    async def table(self, sidecarset: SidecarSet) -> tuple[list[str], list[Any]]:
        """What `kubectl get` shows of a set."""
        path = f"/apis/apps.unisound.io/v1alpha1/sidecarsets/{sidecarset.metadata.name}"
        answer = await self.client.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        tree = json.loads(answer.body)
        return [column["name"] for column in tree["columnDefinitions"]], tree["rows"][0]["cells"]

    async def pods(self) -> list[Pod]:
        return list(await self.client.list(Pod, namespace=self.namespace))


def names(containers: Iterable[Any] | None) -> list[str]:
    return [container.name for container in containers or ()]


def image_of(pod: Pod, container: str = "log") -> str | None:
    return next(item.image for item in pod.spec.containers if item.name == container)


def condition(sidecarset: SidecarSet, kind: str) -> tuple[str, str]:
    """The status and the reason of a condition."""
    found = find_condition(sidecarset.status.conditions, kind)
    assert found is not None, f"{sidecarset.metadata.name} has no condition {kind}"
    return found.status, found.reason or ""


def causes(error: Any) -> list[str]:
    """The fields that a refusal blames."""
    return [cause.field for cause in error.causes]
