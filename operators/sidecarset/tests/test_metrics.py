"""The counts of the status as metrics."""

from sidecarset.api.v1alpha1.sidecarset import SidecarSetStatus
from sidecarset.status import GAUGES


class Counted:
    """As much of an object as a gauge looks at."""

    status = SidecarSetStatus()


def test_every_gauge_is_a_count_of_the_status() -> None:
    assert [name for name, number in GAUGES.items() if number(Counted()) != 0] == []
    assert len(GAUGES) > 1
