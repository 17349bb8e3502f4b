"""Home: the namespace of one test, with the few things that all tests do in it."""

from collections.abc import Awaitable, Callable
from typing import Any, Self, final
from uuid import uuid4

from kubewright import Condition, ObjectKey, ObjectMeta, find_condition
from kubewright.client import HttpRequest
from kubewright.k8s.core.v1 import Container, Namespace, Pod, PodSpec, ServiceAccount
from kubewright.testing import RunningOperator, until

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerTool, PodBuggerToolSpec

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

    async def pod(
        self, name: str = "web", *, app: str | None = "web", command: str = "sleep", **annotations: str
    ) -> Pod:
        """A new pod; keywords are annotations, `ready` is said to the simulated kubelet."""
        words = {"simulation.kubewright.io/ready": annotations.pop("ready")} if "ready" in annotations else {}
        words |= {"apps.jicki.cn/debug": annotations.pop("debug")} if "debug" in annotations else {}
        made = Pod(
            metadata=ObjectMeta(
                name=name,
                namespace=self.namespace,
                labels={} if app is None else {"app": app},
                annotations=annotations | words,
            ),
            spec=PodSpec(containers=[Container(name="main", image="busybox", command=[command, "3600"])]),
        )
        return await self.client.create(made)

    async def running_pod(self, name: str = "web", **options: str | None) -> Pod:
        """A new pod, as soon as it runs."""
        await self.pod(name, **options)  # type: ignore[arg-type]  # the names are those of `pod`
        return await self.pod_until(lambda pod: pod.status.phase == "Running", name)

    async def tool(self, name: str = "debug", **spec: Any) -> PodBuggerTool:
        """A new tool for the pods with the label `app=web`, unless it says otherwise."""
        given: dict[str, Any] = {"image": "tools:1"} | ({} if "selector" in spec else {"label": "app=web"}) | spec
        return await self.client.create(PodBuggerTool.named(name, self.namespace, spec=PodBuggerToolSpec(**given)))

    async def change(self, name: str = "debug", **spec: Any) -> PodBuggerTool:
        tool = await self.client.get(PodBuggerTool, self.key(name))
        for field, value in spec.items():
            setattr(tool.spec, field, value)
        return await self.client.patch(tool)

    async def relabel(self, name: str, **labels: str) -> Pod:
        """Give a pod these labels and no others."""
        pod = await self.client.get(Pod, self.key(name))
        pod.metadata.labels = labels
        return await self.client.patch(pod)

    async def until(
        self, holds: Callable[[PodBuggerTool], object], name: str = "debug", *, seconds: float = 60
    ) -> PodBuggerTool:
        return await until(self.client, PodBuggerTool, self.key(name), holds, timeout=seconds)

    async def counted(
        self, name: str = "debug", *, matched: int, installed: int, running: int | None = None
    ) -> PodBuggerTool:
        """The tool, as soon as its status is about its spec and says these numbers."""

        def holds(seen: PodBuggerTool) -> bool:
            status = seen.status
            return (
                status.observed_generation == seen.metadata.generation
                and (status.matched_pods, status.installed_pods) == (matched, installed)
                and running in (None, status.running_pods)
            )

        return await self.until(holds, name)

    async def pod_until(self, holds: Callable[[Pod], object], name: str = "web") -> Pod:
        return await until(self.client, Pod, self.key(name), holds, timeout=60)

    async def served(self, name: str = "web", *, by: int = 1) -> list[str]:
        """The names of a pod's ephemeral containers, as soon as there are so many."""
        pod = await self.pod_until(lambda pod: len(pod.spec.ephemeral_containers or ()) >= by, name)
        return [container.name for container in pod.spec.ephemeral_containers or ()]

    async def containers(self, name: str = "web") -> list[str]:
        """The names of a pod's ephemeral containers."""
        pod = await self.client.get(Pod, self.key(name))
        return [container.name for container in pod.spec.ephemeral_containers or ()]

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


def condition(tool: PodBuggerTool, kind: str) -> Condition:
    found = find_condition(tool.status.conditions, kind)
    assert found is not None, f"{tool.key} has no condition {kind}"
    return found
