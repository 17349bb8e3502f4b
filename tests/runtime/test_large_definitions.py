"""A CRD with the schema of a pod in it is installed and used without holding up the event loop, nor for long.

What is counted is work, the calls of Python functions, and no time: a busy machine does not do more of it. A loop that
is held for a second does some millions of calls.

Covers: kubewright.cluster.install, kubewright.testing.operators, kubewright.apiserver.controllers.crd_resources
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from kubewright import Cluster, Context, ObjectKey, Resource, Spec, Status, controller
from kubewright.api.codec import encode_tree
from kubewright.apiserver.kinds import large_requests
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.generate.crds.manifests import crd_for
from kubewright.k8s.batch.v1 import Job, JobSpec, JobTemplateSpec
from kubewright.k8s.core.v1 import Container, ObjectReference, PodSpec, PodTemplateSpec
from kubewright.testing import running, until

MOST_AT_ONCE = 60_000
"""Calls between two turns of the loop: some thirty milliseconds of a quick machine."""
MOST_IN_ALL = 600_000
"""Calls that installing it may take: three tenths of a second of a quick machine."""


class CronJobSpec(Spec):
    schedule: str
    job_template: JobTemplateSpec
    suspend: bool = False


class CronJobStatus(Status):
    active: list[ObjectReference] = []
    seen: bool = False


class CronJob(Resource[CronJobSpec, CronJobStatus], group="large.example.io", version="v1"):
    """As in the book of kubebuilder."""


@controller(CronJob, owns=[Job])
async def reconcile(job: CronJob, ctx: Context) -> None:
    job.status.seen = True


class Work:
    """Calls of Python functions, counted by the turns of the event loop and by all threads that take part."""

    def __init__(self) -> None:
        self.in_all = 0
        self.longest_turn = 0
        self._turn = 0

    def on_loop(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self.in_all += 1
            self._turn = 0 if frame.f_code is asyncio.Handle._run.__code__ else self._turn + 1
            self.longest_turn = max(self.longest_turn, self._turn)

    def beside(self, frame: FrameType, event: str, argument: Any) -> None:
        self.in_all += event == "call"


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    work = Work()
    plain = large_requests._THREAD.submit

    def submit(function: Callable[..., Any], /, *arguments: Any) -> Any:
        def run() -> Any:
            sys.setprofile(work.beside)
            try:
                return function(*arguments)
            finally:
                sys.setprofile(None)

        return plain(run)

    monkeypatch.setattr(large_requests._THREAD, "submit", submit)
    before = sys.getprofile()
    sys.setprofile(work.on_loop)
    try:
        yield work
    finally:
        sys.setprofile(before)


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with Cluster.embedded(pods=False) as cluster:
        await cluster.wait_for_controllers()
        yield cluster


def a_job(name: str) -> CronJob:
    pod = PodTemplateSpec(spec=PodSpec(restart_policy="Never", containers=[Container(name="a", image="b")]))
    template = JobTemplateSpec(spec=JobSpec(template=pod))
    return CronJob.named(name, "default", spec=CronJobSpec(schedule="@daily", job_template=template))


async def test_a_large_definition_is_installed_changed_and_used_while_the_loop_turns(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    crd = crd_for(CronJob)
    assert len(encode_tree(crd)) > 300_000

    with counted(monkeypatch) as installing:
        await install_crds(cluster.client, crd)
    assert installing.in_all < MOST_IN_ALL
    assert installing.longest_turn < MOST_AT_ONCE

    with counted(monkeypatch) as using:
        await cluster.client.create(a_job("first"))
    assert using.longest_turn < MOST_AT_ONCE

    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["spec"]["properties"]["suspend"]["description"] = "Changed."
    with counted(monkeypatch) as changing:
        await install_crds(cluster.client, crd)
        await cluster.client.create(a_job("second"))
    assert changing.in_all < MOST_IN_ALL
    assert changing.longest_turn < MOST_AT_ONCE


async def test_an_operator_of_a_large_kind_starts_while_the_loop_turns(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with counted(monkeypatch) as starting:
        async with running(reconcile, on=cluster) as operator:
            await operator.client.create(a_job("first"))
            await until(operator.client, CronJob, ObjectKey("default", "first"), lambda seen: seen.status.seen)

    assert starting.longest_turn < MOST_AT_ONCE
    assert "the event loop is blocked" not in caplog.text
