"""The counts of the status as metrics."""

from modelbox.api.v1.status import ModelBoxStatus
from modelbox.status import GAUGES


class Counted:
    """As much of an object as a gauge looks at."""

    status = ModelBoxStatus()


def test_every_gauge_is_a_count_of_the_status() -> None:
    assert [name for name, number in GAUGES.items() if number(Counted()) != 0] == []
    assert len(GAUGES) > 1
