"""A real API server whose own workload controllers are switched off and ours run instead; and one with its own.

`ours` and `theirs` are clients of the two; `plane` is either, for cases that both must pass. There is no kubelet:
`Pods` says what happens to pods, by writing their status.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from tests.planes import faulty
from tests.waiting import present

from kubewright import Client, Config, Manager, ManagerOptions, ObjectKey, connect
from kubewright.api import KubeObject
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.controller_manager.workloads import workload_controllers
from kubewright.cluster.planes.real import RealCluster
from kubewright.errors import Conflict, NotFound
from kubewright.k8s.core.v1 import Event, Namespace, Pod, ServiceAccount
from kubewright.testing import until
from kubewright.testing.faults import FaultyTransport

K = TypeVar("K", bound=KubeObject)

OFF = (
    "deployment-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "ttl-after-finished-controller",
)


class Plane:
    """One control plane and a namespace in it."""

    def __init__(self, client: Client, cluster: RealCluster, namespace: str, name: str) -> None:
        self.client = client
        self.cluster = cluster
        self.namespace = namespace
        self.name = name
        self.pods = Pods(client, namespace)

    async def until(self, kind: type[K], name: str, holds: Callable[[K], bool], *, seconds: float = 60) -> K:
        """The object once it satisfies a condition."""
        return await until(self.client, kind, ObjectKey(self.namespace, name), holds, timeout=seconds)

    async def all(self, kind: type[K], holds: Callable[[list[K]], bool], *, seconds: float = 60) -> list[K]:
        """All objects of a kind once they satisfy a condition together, oldest first."""
        have = await present(
            self.client, kind, self.namespace, lambda have: holds(list(have.values())), seconds=seconds
        )
        return list(have.values())

    async def events(self, about: str, wanted: int) -> list[tuple[str, str, str]]:
        """Type, reason and message of what was said about objects of that name, once there is so much."""

        def said(have: list[Event]) -> list[Event]:
            return [event for event in have if event.involved_object.name == about]

        have = said(await self.all(Event, lambda have: len(said(have)) >= wanted))
        return sorted((event.type or "", event.reason or "", event.message or "") for event in have)

    async def kubectl(self, *arguments: str) -> str:
        child = await asyncio.create_subprocess_exec(
            self.cluster.kubectl,
            f"--kubeconfig={self.cluster.kubeconfig}",
            f"--namespace={self.namespace}",
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await child.communicate()
        assert child.returncode == 0, output.decode()
        return output.decode()


class Pods:
    """What a kubelet would say."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def list(self, labels: str | None = None) -> list[Pod]:
        return list(await self._client.list(Pod, namespace=self._namespace, labels=labels))

    async def ready(self, pod: Pod, *, at: datetime | None = None) -> None:
        """The pod runs and is ready."""
        moment = (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": moment}
        await self._status(pod, {"phase": "Running", "startTime": moment, "conditions": [condition]})

    async def unready(self, pod: Pod) -> None:
        """The pod runs and is not ready any more."""
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": moment}
        await self._status(pod, {"phase": "Running", "conditions": [condition]})

    async def ended(self, pod: Pod, phase: str, *, ago: float = 0) -> None:
        """The pod has Succeeded or Failed, some seconds ago."""
        moment = (datetime.now(UTC) - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
        state = {"exitCode": 0 if phase == "Succeeded" else 1, "startedAt": moment, "finishedAt": moment}
        containers = [
            {
                "name": container.name,
                "image": container.image,
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": state},
            }
            for container in pod.spec.containers
        ]
        await self._status(pod, {"phase": phase, "startTime": moment, "containerStatuses": containers})

    @asynccontextmanager
    async def always_ready(self, wanted: Callable[[Pod], bool] = lambda pod: True) -> AsyncIterator[None]:
        """Every pod becomes ready at once, and is gone as soon as somebody deletes it."""
        task = asyncio.create_task(self._keep_ready(wanted))
        try:
            yield
        finally:
            task.cancel()
            (ended,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError), ended

    async def _keep_ready(self, wanted: Callable[[Pod], bool]) -> None:
        while True:  # a server ends the watch of somebody who reads too slowly
            async with self._client.watch(Pod, namespace=self._namespace, initial_events=True) as events:
                async for event in events:
                    pod = event.object
                    if event.type == "DELETED":
                        continue
                    if pod.metadata.deletion_timestamp is not None:
                        await self._gone(pod)
                    elif pod.status.phase == "Pending" and wanted(pod):
                        await self.ready(pod)

    async def _gone(self, pod: Pod) -> None:
        with suppress(NotFound, Conflict):
            await self._client.delete(pod, grace_period=0)

    async def _status(self, pod: Pod, status: dict[str, Any]) -> None:
        with suppress(NotFound):
            await self._client.patch_by_name(Pod, pod.key, {"status": status}, subresource="status")


@pytest.fixture(scope="package")
async def our_cluster(real_binaries: Binaries) -> AsyncIterator[RealCluster]:
    """A control plane without workload controllers."""
    flags = {"controllers": ",".join(["*", *(f"-{name}" for name in OFF)])}
    async with RealCluster(start_timeout=300, version=real_binaries.version, controller_manager_flags=flags) as cluster:
        yield cluster


@pytest.fixture(scope="package")
async def controllers(our_cluster: RealCluster) -> AsyncIterator[FaultyTransport]:
    """Our controllers at work; what comes back is the network between them and the server."""
    options = ManagerOptions(name="kube-controller-manager", health_address="0", metrics_address="0")
    async with (
        faulty(our_cluster.kubeconfig) as (client, faults),
        Manager(*workload_controllers(), client=client, options=options),
    ):
        yield faults


@pytest.fixture(scope="package")
async def our_client(our_cluster: RealCluster, controllers: FaultyTransport) -> AsyncIterator[Client]:
    """An administrator's client of the control plane on which our controllers run."""
    async with connect(Config.load(kubeconfig=our_cluster.kubeconfig)) as client:
        yield client


@pytest.fixture(scope="module")
async def their_client(real_cluster: RealCluster) -> AsyncIterator[Client]:
    """An administrator's client of a control plane with Kubernetes' own controllers."""
    async with connect(Config.load(kubeconfig=real_cluster.kubeconfig)) as client:
        yield client


@pytest.fixture
async def ours(our_cluster: RealCluster, our_client: Client) -> AsyncIterator[Plane]:
    async with _plane(our_client, our_cluster, "ours") as plane:
        yield plane


@pytest.fixture
async def theirs(real_cluster: RealCluster, their_client: Client) -> AsyncIterator[Plane]:
    async with _plane(their_client, real_cluster, "theirs") as plane:
        yield plane


@pytest.fixture(params=["ours", "theirs"])
def plane(request: pytest.FixtureRequest) -> Plane:
    """Both: a case that Kubernetes' own controllers do not pass says nothing about ours."""
    chosen = request.getfixturevalue(request.param)
    assert isinstance(chosen, Plane)
    return chosen


@asynccontextmanager
async def _plane(client: Client, cluster: RealCluster, name: str) -> AsyncIterator[Plane]:
    namespace = f"workloads-{uuid4().hex[:10]}"
    await client.create(Namespace.named(namespace))
    await until(client, ServiceAccount, ObjectKey(namespace, "default"), timeout=60)
    try:
        yield Plane(client, cluster, namespace, name)
    finally:
        await client.delete(Namespace, namespace)
