"""Controllers of the cluster that have not heard of an object yet: what cannot be taken back is asked of the server.

Covers: kubewright.cluster.controller_manager.storage
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from tests.builders.storage import volume_claim
from tests.cluster.controller_manager.conftest import QUIET, said

from kubewright import Client, Manager
from kubewright.api import set_controller
from kubewright.api.codec import from_tree
from kubewright.cluster.controller_manager.storage.protection import pvc_protection_controller
from kubewright.cluster.controller_manager.workloads.jobs.cronjob import cron_job_controller
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.controllers.declaration import Declaration
from kubewright.k8s.batch.v1 import CronJob, Job
from kubewright.k8s.core.v1 import PersistentVolumeClaim, Pod, ServiceAccount
from kubewright.testing import FaultyTransport, VirtualClock, gone

POD = {"containers": [{"name": "c", "image": "i:1"}], "restartPolicy": "Never"}


@asynccontextmanager
async def unaware(of: str, *controllers: Declaration[Any]) -> AsyncIterator[tuple[Client, FaultyTransport]]:
    """A cluster with these controllers alone, which hear nothing more of one resource."""
    async with EmbeddedCluster(controllers=False) as cluster:
        client = cluster.client
        await client.create(ServiceAccount.named("default", "default"))
        faults = FaultyTransport(client.transport)
        async with Manager(*controllers, client=Client(faults), options=QUIET):
            faults.hold_streams(lambda request: request.path.endswith(f"/{of}"))
            yield client, faults
            faults.release_streams()


async def test_a_claim_stays_reserved_for_a_pod_that_the_cache_lacks() -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "used"}}
    tree = {"metadata": {"name": "user", "namespace": "default"}, "spec": {**POD, "nodeName": "n", "volumes": [volume]}}
    async with unaware("pods", pvc_protection_controller()) as (client, faults):
        for name in ("used", "unused"):
            await client.create(volume_claim(name, "default", storageClassName=""))
        pod = await client.create(from_tree(Pod, tree))
        for name in ("used", "unused"):
            await client.delete(PersistentVolumeClaim, name, namespace="default")

        await gone(client, PersistentVolumeClaim, "unused", namespace="default")  # the other was looked at before
        left = await client.get(PersistentVolumeClaim, "used", namespace="default")
        assert left.metadata.finalizers == ["kubernetes.io/pvc-protection"]

        await client.delete(pod, grace_period=0)
        faults.release_streams()
        await gone(client, PersistentVolumeClaim, "used", namespace="default")


async def test_a_job_that_the_cache_lacks_is_not_created_twice() -> None:
    clock = VirtualClock(start=datetime(2030, 1, 1, 12, 30, tzinfo=UTC))
    template = {"spec": {"template": {"spec": POD}}}
    spec = {"schedule": "0 * * * *", "concurrencyPolicy": "Forbid", "suspend": True, "jobTemplate": template}
    place = {"name": "tick", "namespace": "default"}
    async with unaware("jobs", cron_job_controller(clock)) as (client, _):
        tick = await client.create(from_tree(CronJob, {"metadata": place, "spec": spec}))
        old = from_tree(Job, {"metadata": {"name": "old", "namespace": "default"}, "spec": template["spec"]})
        set_controller(tick, old)
        uid = (await client.create(old)).metadata.uid
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "old", "namespace": "default", "uid": uid}
        status = {"lastScheduleTime": "2030-01-01T11:00:00Z", "active": [reference]}
        await client.patch_by_name(CronJob, tick.key, {"status": status}, subresource="status")
        await client.patch_by_name(CronJob, tick.key, {"spec": {"suspend": False}})

        await said(client, "tick", "JobAlreadyActive")

        assert [job.metadata.name for job in await client.list(Job, namespace="default")] == ["old"]
        seen = await client.get(CronJob, tick.key)
        assert [each.name for each in seen.status.active or ()] == ["old"]
