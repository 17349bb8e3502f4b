"""The pods of a job: how they are made, when they ended, and the finalizer that keeps them until they are counted.

A pod that is deleted before its job has noted how it ended would be run again. So each carries a finalizer, which is
removed once the job's status accounts for it. `OrphanedPods` removes it from those whose job is gone, which the job's
own reconciler never hears of.
"""

from __future__ import annotations

import asyncio
import copy
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, final

from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.owners import controller_of
from kubewright.cache.cached_client import CachedClient
from kubewright.cache.changes import Change
from kubewright.cluster.controller_manager.workloads.pods import pod_from, ready_condition
from kubewright.controllers.declaration import Watch
from kubewright.controllers.predicates import any_change
from kubewright.errors import KubewrightError, NotFound
from kubewright.k8s.batch.v1 import Job
from kubewright.k8s.core.v1 import Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod
from kubewright.workqueue.queue import WorkQueue

__all__ = ("INDEX", "TRACKING", "OrphanedPods", "ended_at", "index_of", "new_pod", "untrack")

TRACKING: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_RETRY_SECONDS: Final = 5.0


def index_of(pod: Pod) -> int | None:
    """Which of the job's indexes it works on."""
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isascii() and text.isdigit() else None


def new_pod(job: Job, index: int | None) -> Pod:
    """A pod of the job, for one of its indexes if it has them."""
    pod = pod_from(job.spec.template, job.metadata.name)
    if TRACKING not in pod.metadata.finalizers:
        pod.metadata.finalizers.append(TRACKING)
    if index is None:
        return pod
    pod.metadata.generate_name = f"{job.metadata.name}-{index}-"
    pod.metadata.annotations[INDEX] = pod.metadata.labels[INDEX] = str(index)
    pod.spec = copy.copy(pod.spec)
    pod.spec.hostname = f"{job.metadata.name}-{index}"
    pod.spec.containers = [_told(container) for container in pod.spec.containers]
    if pod.spec.init_containers:
        pod.spec.init_containers = [_told(container) for container in pod.spec.init_containers]
    return pod


def _told(container: Container) -> Container:
    """The container with its index in the environment."""
    if any(variable.name == _VARIABLE for variable in container.env or ()):
        return container
    source = EnvVarSource(field_ref=ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']"))
    told = copy.copy(container)
    told.env = [*(container.env or ()), EnvVar(name=_VARIABLE, value_from=source)]
    return told


def ended_at(pod: Pod) -> datetime:
    """When it ended, as well as can be told."""
    ends = []
    for status in pod.status.container_statuses or ():
        ended = status.state.terminated if status.state is not None else None
        ends.append(ended.finished_at if ended is not None else None)
    known = [moment for moment in ends if moment is not None]
    if known and len(known) == len(ends):
        return max(known)
    condition = ready_condition(pod)
    if condition is not None and condition.status == "False" and condition.last_transition_time is not None:
        return condition.last_transition_time
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        return metadata.deletion_timestamp - timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
    return metadata.creation_timestamp or _EPOCH


async def untrack(pod: Pod, client: CachedClient) -> None:
    """Take the finalizer off; that the pod is gone is fine."""
    patch = {"metadata": {"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [TRACKING]}}
    try:
        await client.patch_by_name(Pod, pod.key, patch, form="strategic")
    except NotFound:
        return


@final
class OrphanedPods:
    """Frees pods whose job is gone or going. A source that wakes nobody: it does its work by itself."""

    def __init__(self) -> None:
        self._client: CachedClient | None = None
        self._of_job: dict[str, set[ObjectKey]] = defaultdict(set)
        self._doubtful: dict[ObjectKey, None] = {}
        self._wake = asyncio.Event()

    @property
    def watches(self) -> tuple[Watch, Watch]:
        """Every job that goes away, and every pod that carries the finalizer."""
        return Watch(Job, self._job_changed, any_change), Watch(Pod, self._pod_changed)

    def start(self, client: CachedClient) -> None:
        """Everything that was there has been seen; from now on there is a client to work with."""
        self._client = client
        self._wake.set()

    async def run(self, queue: WorkQueue[ObjectKey]) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._client is not None and self._doubtful:
                key = next(iter(self._doubtful))
                try:
                    await self._look(key, self._client)
                except KubewrightError:  # the server is away or busy: later again
                    asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._wake.set)
                    break
                self._doubtful.pop(key, None)

    async def wait_for_sync(self) -> None:
        return

    def _job_changed(self, change: Change[Any]) -> Iterable[ObjectKey]:
        metadata = change.new_metadata
        leaving = change.old_metadata if metadata is None else metadata
        if leaving is not None and (metadata is None or metadata.deletion_timestamp is not None):
            self._doubt(self._of_job.get(leaving.uid, ()))
        return ()

    def _pod_changed(self, change: Change[Any]) -> Iterable[ObjectKey]:
        old, new = change.old_metadata, change.new_metadata
        if old is not None:
            for uid in _jobs_of(old):
                self._of_job[uid].discard(change.key)
                if not self._of_job[uid]:
                    del self._of_job[uid]
        if new is None or TRACKING not in new.finalizers:
            return ()
        jobs = _jobs_of(new)
        for uid in jobs:
            self._of_job[uid].add(change.key)
        # A pod that is being deleted while its job is there is the reconciler's; one without a job is nobody's.
        if not jobs or new.deletion_timestamp is not None:
            self._doubt([change.key])
        return ()

    def _doubt(self, keys: Iterable[ObjectKey]) -> None:
        self._doubtful.update(dict.fromkeys(keys))
        self._wake.set()

    async def _look(self, key: ObjectKey, client: CachedClient) -> None:
        pod = await client.find(Pod, key)
        if pod is None or TRACKING not in pod.metadata.finalizers:
            return
        owner = controller_of(pod)
        if owner is not None and owner.kind == "Job":
            job = await client.find(Job, ObjectKey(key.namespace, owner.name))
            if job is not None and job.metadata.uid == owner.uid and job.metadata.deletion_timestamp is None:
                return
        await untrack(pod, client)


def _jobs_of(metadata: ObjectMeta) -> list[str]:
    return [each.uid for each in metadata.owner_references if each.controller and each.kind == "Job"]
