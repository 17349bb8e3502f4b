"""The counts of the status as metrics."""

from podset.api.v1alpha1.podset import PodSetStatus
from podset.status import GAUGES


class StubObject:
    """As much of an object as a gauge looks at."""

    status = PodSetStatus(replicas=1, ready_replicas=2)


def test_every_gauge_is_a_count_of_the_status() -> None:
    assert {name: number(StubObject()) for name, number in GAUGES.items()} == {
        "podset_replicas": 1,
        "podset_ready_replicas": 2,
    }
