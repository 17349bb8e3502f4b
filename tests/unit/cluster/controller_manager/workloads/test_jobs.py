"""Pure parts of the Job controller: indexes, back-off, finish times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright import ObjectKey, ObjectMeta
from kubewright.cluster.controller_manager.workloads.jobs.indexes import format_indexes, parse_indexes
from kubewright.cluster.controller_manager.workloads.jobs.job import BackoffStore
from kubewright.cluster.controller_manager.workloads.jobs.pods import (
    TRACKING_FINALIZER,
    completion_index,
    finish_time,
    new_pod,
)
from kubewright.k8s.batch.v1 import Job, JobSpec
from kubewright.k8s.core.v1 import (
    Container,
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    EnvVar,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = ObjectKey("shop", "work")


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        ([], ""),
        ([3], "3"),
        ([1, 2], "1,2"),
        ([1, 2, 3], "1-3"),
        ([7, 1, 3, 4, 5], "1,3-5,7"),
        ([0, 1, 3, 4], "0,1,3,4"),
    ],
)
def test_three_in_a_row_are_a_range(indexes: list[int], text: str) -> None:
    assert format_indexes(indexes) == text
    assert parse_indexes(text, 10) == set(indexes)


@given(st.sets(st.integers(0, 60)))
def test_formatted_indexes_are_parsed_back(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes), 61) == indexes


def test_indexes_beyond_completions_are_ignored() -> None:
    assert parse_indexes("1-9,x,3-,12", 4) == {1, 2, 3}
    assert parse_indexes(None, 4) == set()


def ended(seconds: float) -> Pod:
    moment = NOW + timedelta(seconds=seconds)
    state = ContainerState(terminated=ContainerStateTerminated(exit_code=1, finished_at=moment))
    status = ContainerStatus(name="main", image="", image_id="", ready=False, restart_count=0, state=state)
    return Pod(status=PodStatus(phase="Failed", container_statuses=[status]))


def test_each_failure_doubles_the_back_off() -> None:
    failures = BackoffStore()
    assert failures.remaining_time(KEY, NOW) == 0

    failures.add_finished(KEY, [], [ended(0)])
    assert failures.remaining_time(KEY, NOW + timedelta(seconds=4)) == 6
    failures.add_finished(KEY, [], [ended(20), ended(10)])
    assert failures.remaining_time(KEY, NOW + timedelta(seconds=20)) == 40
    for _ in range(20):
        failures.add_finished(KEY, [], [ended(30)])
    assert failures.remaining_time(KEY, NOW + timedelta(seconds=30)) == 600


def test_a_success_resets_the_back_off() -> None:
    failures = BackoffStore()
    failures.add_finished(KEY, [], [ended(0), ended(1)])

    failures.add_finished(KEY, [ended(5)], [ended(3), ended(7)])

    assert failures.remaining_time(KEY, NOW + timedelta(seconds=7)) == 10
    failures.add_finished(KEY, [ended(8)], [])
    assert failures.remaining_time(KEY, NOW + timedelta(seconds=8)) == 0


def test_the_finish_time_comes_from_containers_conditions_or_deletion() -> None:
    bare = Pod(metadata=ObjectMeta(creation_timestamp=NOW))
    assert finish_time(bare) == NOW

    bare.metadata.deletion_timestamp = NOW + timedelta(seconds=40)
    bare.metadata.deletion_grace_period_seconds = 30

    assert finish_time(bare) == NOW + timedelta(seconds=10)
    assert finish_time(ended(5)) == NOW + timedelta(seconds=5)


def test_a_pod_of_an_index_has_the_index_and_does_not_change_the_template() -> None:
    main, other = Container(name="main"), Container(name="b", env=[EnvVar(name="JOB_COMPLETION_INDEX", value="mine")])
    template = PodTemplateSpec(spec=PodSpec(containers=[main, other]))
    job = Job.named("work", spec=JobSpec(template=template))

    made = new_pod(job, 3)

    assert completion_index(made) == 3
    assert made.metadata.finalizers == [TRACKING_FINALIZER]
    assert (made.metadata.generate_name, made.spec.hostname) == ("work-3-", "work-3")
    assert [len(container.env or ()) for container in made.spec.containers] == [1, 1]
    assert main.env is None
    assert template.spec is not None
    assert template.spec.hostname is None
    assert completion_index(new_pod(job, None)) is None
