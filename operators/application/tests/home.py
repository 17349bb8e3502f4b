"""Home: the namespace of one test, with the few things that all tests do in it."""

from collections.abc import Callable
from typing import Any, TypeVar, final
from uuid import uuid4

from kubewright import Condition, ObjectKey, find_condition
from kubewright.api import KubeObject
from kubewright.client import HttpRequest
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import ConfigMap, Namespace, Pod, ServiceAccount
from kubewright.k8s.events.v1 import Event
from kubewright.testing import RunningOperator, gone, time_limit, until

from application.api.v1alpha1.application import Application, ApplicationSpec
from application.names import INSTANCE

K = TypeVar("K", bound=KubeObject)
HOLD = "tests.example.io/hold"


@final
class Home:
    """A namespace in which the operator works."""

    def __init__(self, operator: RunningOperator, namespace: str) -> None:
        self.client = operator.client
        self.faults = operator.faults
        self.namespace = namespace

    @classmethod
    async def made(cls, operator: RunningOperator) -> "Home":
        namespace = f"home-{uuid4().hex[:8]}"
        await operator.client.create(Namespace.named(namespace))
        # Without its account a namespace takes no pods.
        await until(operator.client, ServiceAccount, ObjectKey(namespace, "default"))
        return cls(operator, namespace)

    def key(self, name: str = "web") -> ObjectKey:
        return ObjectKey(self.namespace, name)

    def draft(self, *, name: str = "web", **spec: Any) -> Application:
        """An Application that is not sent yet."""
        wanted = ApplicationSpec(**{"image": "nginx:1.29", **spec})
        return Application.named(name, self.namespace, spec=wanted)

    async def make(self, *, name: str = "web", **spec: Any) -> Application:
        return await self.client.create(self.draft(name=name, **spec))

    async def ready(self, *, name: str = "web", **spec: Any) -> Application:
        """A new Application, as soon as all its pods are ready."""
        await self.make(name=name, **spec)
        return await self.until(is_ready, name=name)

    async def edit(self, patch: dict[str, Any], *, name: str = "web") -> Application:
        """Change the spec, as `kubectl patch` would."""
        return await self.client.patch_by_name(Application, self.key(name), {"spec": patch})

    async def config(self, *, name: str = "settings", **data: str) -> ConfigMap:
        return await self.client.apply(ConfigMap.named(name, self.namespace, data=data), force=True)

    async def until(self, holds: Callable[[Application], object], *, name: str = "web") -> Application:
        return await until(self.client, Application, self.key(name), holds, timeout=60)

    async def all_until(self, names: list[str], holds: Callable[[Application], object]) -> None:
        """As `until`, for many at once."""
        waiting = set(names)
        async with (
            time_limit(90),
            self.client.watch(Application, namespace=self.namespace, initial_events=True) as events,
        ):
            async for event in events:
                if event.type != "DELETED" and holds(event.object):
                    waiting.discard(event.object.metadata.name)
                if not waiting:
                    return

    async def child(self, kind: type[K], holds: Callable[[K], object] = lambda _: True, *, name: str = "web") -> K:
        """The child of an Application, as soon as it is as expected."""
        return await until(self.client, kind, self.key(name), holds, timeout=60)

    async def deployment(self, *, name: str = "web") -> Deployment:
        return await self.client.get(Deployment, self.key(name))

    async def pods(self, *, name: str = "web") -> list[Pod]:
        return list(await self.client.list(Pod, namespace=self.namespace, labels={INSTANCE: name}))

    async def gone(self, kind: type[KubeObject] = Application, *, name: str = "web") -> None:
        # A real garbage collector learns of a new kind of owner within half a minute, and looks again after that.
        await gone(self.client, kind, self.key(name), timeout=90)

    async def delete(self, *, name: str = "web") -> None:
        """Ask for its end, and return."""
        await self.client.delete(Application, self.key(name))

    async def event(self, reason: str, note: str = "") -> Event:
        """The first event on an Application for that reason, and with these words in it."""
        async with (
            time_limit(60),
            self.client.watch(Event, namespace=self.namespace, initial_events=True) as events,
        ):
            async for event in events:
                about = event.object.regarding
                told = event.object.reason == reason and note in (event.object.note or "")
                if told and about is not None and about.kind == "Application":
                    return event.object
        raise AssertionError("the watch ended")

    async def hold(self, pod: Pod) -> None:
        """Keep a pod from going, however often it is deleted."""
        await self.client.patch_by_name(Pod, pod.key, {"metadata": {"finalizers": [HOLD]}})

    async def let_go(self, pod: Pod) -> None:
        await self.client.patch_by_name(Pod, pod.key, {"metadata": {"finalizers": None}})

    def writes(self, since: int = 0, path: str = "") -> list[HttpRequest]:
        """What the operator has written in this namespace since so many requests, events left aside."""
        return [
            request
            for request in self.faults.requests[since:]
            if request.method != "GET"
            and f"/namespaces/{self.namespace}/" in request.path
            and not request.path.startswith("/apis/events.k8s.io/")
            and path in request.path
        ]


def is_ready(application: Application) -> bool:
    """Whether what it asks for now is there."""
    ready = find_condition(application.status.conditions, "Ready")
    seen = application.status.observed_generation == application.metadata.generation
    return seen and ready is not None and ready.status == "True"


def condition(application: Application, kind: str) -> Condition:
    found = find_condition(application.status.conditions, kind)
    assert found is not None, f"{application.key} has no condition {kind}"
    return found


def says(kind: str, status: str, reason: str) -> Callable[[Application], bool]:
    """A test for a condition, for `until`."""

    def holds(application: Application) -> bool:
        found = find_condition(application.status.conditions, kind)
        return found is not None and (found.status, found.reason) == (status, reason)

    return holds
