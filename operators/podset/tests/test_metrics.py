"""The counts of the status as metrics."""

from podset.api.v1alpha1.podset import PodSetStatus
from podset.status import GAUGES


class Counted:
    """As much of an object as a gauge looks at."""

    status = PodSetStatus()


def test_every_gauge_is_a_count_of_the_status() -> None:
    assert [name for name, number in GAUGES.items() if number(Counted()) != 0] == []
    assert len(GAUGES) > 1
