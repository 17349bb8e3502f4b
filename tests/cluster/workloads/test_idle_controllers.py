"""Controllers that have nothing to do do nothing, and a network that fails makes them do nothing twice.

Covers: kubewright.cluster.controller_manager.workloads
"""

from __future__ import annotations

import pytest
from tests.builders.workloads import pod_template, replica_set, selector
from tests.cluster.workloads.conftest import Plane

from kubewright.client.transport.transport import HttpRequest
from kubewright.k8s.apps.v1 import (
    Deployment,
    DeploymentSpec,
    ReplicaSet,
    StatefulSet,
    StatefulSetSpec,
)
from kubewright.k8s.batch.v1 import Job, JobSpec
from kubewright.k8s.core.v1 import Pod
from kubewright.testing.faults import FaultyTransport

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]


async def test_idle_workloads_cause_no_writes(ours: Plane, controllers: FaultyTransport) -> None:
    create = ours.client.create
    spec = DeploymentSpec(replicas=2, selector=selector("a"), template=pod_template(app="a"))
    await create(Deployment.named("a", spec=spec), namespace=ours.namespace)
    stateful = StatefulSetSpec(replicas=1, selector=selector("b"), template=pod_template(app="b"), service_name="b")
    await create(StatefulSet.named("b", spec=stateful), namespace=ours.namespace)
    job = JobSpec(completions=2, parallelism=1, template=pod_template(app="c", restart_policy="Never"))
    await create(Job.named("c", spec=job), namespace=ours.namespace)
    async with ours.pods.always_ready():
        await ours.until(Deployment, "a", lambda each: each.status.available_replicas == 2)
        await ours.until(StatefulSet, "b", lambda each: bool(each.status and each.status.available_replicas == 1))
        await ours.until(Job, "c", lambda each: each.status.ready == 1)
        await _until_seen(ours, "before")
        writes = _writes(controllers)

        for pod in await ours.pods.list():
            await ours.client.patch_by_name(Pod, pod.key, {"metadata": {"annotations": {"touched": "yes"}}})
        await _until_seen(ours, "after")

        home = f"/namespaces/{ours.namespace}/"
        about = [line for line in _writes(controllers)[len(writes) :] if home in line and "events" not in line]
        # The one pod is that of the set that was made to be waited for.
        assert [line for line in about if "/after" not in line] == [f"POST /api/v1{home}pods"]


async def _until_seen(plane: Plane, name: str) -> None:
    """Returns when a set made now is done: whatever came before it in the queues has been looked at."""
    await plane.client.create(replica_set(name, replicas=1), namespace=plane.namespace)
    await plane.until(ReplicaSet, name, lambda each: bool(each.status and each.status.available_replicas == 1))


def _writes(controllers: FaultyTransport) -> list[str]:
    return [f"{request.method} {request.path}" for request in controllers.requests if request.method != "GET"]


async def test_cut_watches_make_no_pod_twice(ours: Plane, controllers: FaultyTransport) -> None:
    made: list[str] = []

    def cutting(request: HttpRequest) -> None:
        if request.method == "POST" and request.path.endswith(f"/{ours.namespace}/pods"):
            made.append(request.path)
            controllers.cut_streams()

    controllers.answer = cutting
    try:
        await ours.client.create(replica_set("many", replicas=40), namespace=ours.namespace)
        async with ours.pods.always_ready():
            await ours.until(
                ReplicaSet, "many", lambda each: bool(each.status and each.status.available_replicas == 40)
            )
    finally:
        controllers.answer = None

    assert len(made) == 40
    assert len(await ours.pods.list()) == 40
