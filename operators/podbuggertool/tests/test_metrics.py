"""The counts of the status as metrics."""

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerToolStatus
from podbuggertool.status import GAUGES


class StubObject:
    """As much of an object as a gauge looks at."""

    status = PodBuggerToolStatus(matched_pods=1, installed_pods=2, running_pods=3, failed_pods=4)


def test_every_gauge_is_a_count_of_the_status() -> None:
    assert {name: number(StubObject()) for name, number in GAUGES.items()} == {
        "podbuggertool_matched_pods": 1,
        "podbuggertool_installed_pods": 2,
        "podbuggertool_running_pods": 3,
        "podbuggertool_failed_pods": 4,
    }
