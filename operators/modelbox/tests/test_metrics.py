"""The counts of the status as metrics."""

from modelbox.api.v1.status import ModelBoxStatus
from modelbox.status import GAUGES


class StubObject:
    """As much of an object as a gauge looks at."""

    status = ModelBoxStatus(
        replicas=1, updated_replicas=2, ready_replicas=3, available_replicas=4, unavailable_replicas=5
    )


def test_every_gauge_is_a_count_of_the_status() -> None:
    assert {name: number(StubObject()) for name, number in GAUGES.items()} == {
        "modelbox_replicas": 1,
        "modelbox_updated_replicas": 2,
        "modelbox_ready_replicas": 3,
        "modelbox_available_replicas": 4,
        "modelbox_unavailable_replicas": 5,
    }
