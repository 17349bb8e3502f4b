"""The counts of the status as metrics."""

from sidecarset.api.v1alpha1.sidecarset import SidecarSetStatus
from sidecarset.status import GAUGES


class StubObject:
    """As much of an object as a gauge looks at."""

    status = SidecarSetStatus(matched_pods=1, updated_pods=2, ready_pods=3, updated_ready_pods=4, uninjected_pods=5)


def test_every_gauge_is_a_count_of_the_status() -> None:
    assert {name: number(StubObject()) for name, number in GAUGES.items()} == {
        "sidecarset_matched_pods": 1,
        "sidecarset_updated_pods": 2,
        "sidecarset_ready_pods": 3,
        "sidecarset_updated_ready_pods": 4,
        "sidecarset_uninjected_pods": 5,
    }
