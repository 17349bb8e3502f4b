"""The pods of a Job: creation, finish time, and the tracking finalizer.

A pod that disappears before the Job's status accounts for it would be run again. So each pod has a finalizer, which the
controller removes when the status has recorded the pod. `OrphanPodFinalizers` removes it from pods whose Job is
deleted, as syncOrphanPod of pkg/controller/job/job_controller.go. Called by `job`.
"""

from __future__ import annotations

import asyncio
import copy
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, final

from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.owners import controller_of
from kubewright.api.times import seconds_after
from kubewright.cache.cached_client import CachedClient
from kubewright.cache.changes import Change
from kubewright.cluster.controller_manager.workloads.pods import pod_from_template, ready_condition
from kubewright.controllers.declaration import Watch
from kubewright.controllers.predicates import any_change
from kubewright.errors import KubewrightError, NotFound
from kubewright.k8s.batch.v1 import Job
from kubewright.k8s.core.v1 import Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod
from kubewright.workqueue.queue import WorkQueue

__all__ = (
    "COMPLETION_INDEX",
    "TRACKING_FINALIZER",
    "OrphanPodFinalizers",
    "completion_index",
    "finish_time",
    "new_pod",
    "remove_tracking_finalizer",
)

TRACKING_FINALIZER: Final = "batch.kubernetes.io/job-tracking"
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_RETRY_SECONDS: Final = 5.0


def completion_index(pod: Pod) -> int | None:
    """The completion index of a pod; None if it has none."""
    text = pod.metadata.annotations.get(COMPLETION_INDEX, "")
    return int(text) if text.isascii() and text.isdigit() else None


def new_pod(job: Job, index: int | None) -> Pod:
    """A new pod of the Job, for a completion index if the Job is Indexed."""
    pod = pod_from_template(job.spec.template, job.metadata.name)
    if TRACKING_FINALIZER not in pod.metadata.finalizers:
        pod.metadata.finalizers.append(TRACKING_FINALIZER)
    if index is None:
        return pod
    pod.metadata.generate_name = f"{job.metadata.name}-{index}-"
    pod.metadata.annotations[COMPLETION_INDEX] = pod.metadata.labels[COMPLETION_INDEX] = str(index)
    pod.spec = copy.copy(pod.spec)
    pod.spec.hostname = f"{job.metadata.name}-{index}"
    pod.spec.containers = [_with_index_variable(container) for container in pod.spec.containers]
    if pod.spec.init_containers:
        pod.spec.init_containers = [_with_index_variable(container) for container in pod.spec.init_containers]
    return pod


def _with_index_variable(container: Container) -> Container:
    """The container with JOB_COMPLETION_INDEX in its environment."""
    if any(variable.name == _INDEX_VARIABLE for variable in container.env or ()):
        return container
    source = EnvVarSource(field_ref=ObjectFieldSelector(field_path=f"metadata.labels['{COMPLETION_INDEX}']"))
    copied = copy.copy(container)
    copied.env = [*(container.env or ()), EnvVar(name=_INDEX_VARIABLE, value_from=source)]
    return copied


def finish_time(pod: Pod) -> datetime:
    """When a pod finished, as getFinishedTime of pkg/controller/job/backoff_utils.go: from its containers, its Ready
    condition, its deletion or its creation, in this order."""
    finish_times = []
    for status in pod.status.container_statuses or ():
        terminated = status.state.terminated if status.state is not None else None
        finish_times.append(terminated.finished_at if terminated is not None else None)
    times = [time for time in finish_times if time is not None]
    if times and len(times) == len(finish_times):
        return max(times)
    condition = ready_condition(pod)
    if condition is not None and condition.status == "False" and condition.last_transition_time is not None:
        return condition.last_transition_time
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        return seconds_after(metadata.deletion_timestamp, -(metadata.deletion_grace_period_seconds or 0))
    return metadata.creation_timestamp or _EPOCH


async def remove_tracking_finalizer(pod: Pod, client: CachedClient) -> None:
    """Remove the tracking finalizer; a missing pod is no error."""
    patch = {"metadata": {"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER]}}
    try:
        await client.patch_by_name(Pod, pod.key, patch, patch_type="strategic")
    except NotFound:
        return


@final
class OrphanPodFinalizers:
    """Removes the tracking finalizer from pods whose Job is deleted or terminating. A source that requeues no Job."""

    def __init__(self) -> None:
        self._client: CachedClient | None = None
        self._pods_by_job: dict[str, set[ObjectKey]] = defaultdict(set)
        self._candidates: dict[ObjectKey, None] = {}
        self._wake = asyncio.Event()

    @property
    def watches(self) -> tuple[Watch, Watch]:
        """Watches of Jobs and of pods with the finalizer."""
        return Watch(Job, self._job_changed, any_change), Watch(Pod, self._pod_changed)

    def start(self, client: CachedClient) -> None:
        """Start to process candidates; called when the caches have synced."""
        self._client = client
        self._wake.set()

    async def run(self, queue: WorkQueue[ObjectKey]) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._client is not None and self._candidates:
                key = next(iter(self._candidates))
                try:
                    await self._sync_orphan_pod(key, self._client)
                except KubewrightError:  # the server is unavailable: retry later
                    asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._wake.set)
                    break
                self._candidates.pop(key, None)

    async def wait_for_sync(self) -> None:
        return

    def _job_changed(self, change: Change[Any]) -> Iterable[ObjectKey]:
        metadata = change.new_metadata
        deleted = change.old_metadata if metadata is None else metadata
        if deleted is not None and (metadata is None or metadata.deletion_timestamp is not None):
            self._enqueue(self._pods_by_job.get(deleted.uid, ()))
        return ()

    def _pod_changed(self, change: Change[Any]) -> Iterable[ObjectKey]:
        old, new = change.old_metadata, change.new_metadata
        if old is not None:
            for uid in _job_uids(old):
                self._pods_by_job[uid].discard(change.key)
                if not self._pods_by_job[uid]:
                    del self._pods_by_job[uid]
        if new is None or TRACKING_FINALIZER not in new.finalizers:
            return ()
        jobs = _job_uids(new)
        for uid in jobs:
            self._pods_by_job[uid].add(change.key)
        # The reconciler of an existing Job handles its terminating pods; a pod without a Job has no reconciler.
        if not jobs or new.deletion_timestamp is not None:
            self._enqueue([change.key])
        return ()

    def _enqueue(self, keys: Iterable[ObjectKey]) -> None:
        self._candidates.update(dict.fromkeys(keys))
        self._wake.set()

    async def _sync_orphan_pod(self, key: ObjectKey, client: CachedClient) -> None:
        pod = await client.find(Pod, key)
        if pod is None or TRACKING_FINALIZER not in pod.metadata.finalizers:
            return
        owner = controller_of(pod)
        if owner is not None and owner.kind == "Job":
            job = await client.find(Job, ObjectKey(key.namespace, owner.name))
            if job is not None and job.metadata.uid == owner.uid and job.metadata.deletion_timestamp is None:
                return
        await remove_tracking_finalizer(pod, client)


def _job_uids(metadata: ObjectMeta) -> list[str]:
    return [each.uid for each in metadata.owner_references if each.controller and each.kind == "Job"]
