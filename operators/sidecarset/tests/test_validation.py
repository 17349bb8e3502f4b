"""What is wrong with a set, taken by itself."""

from typing import Any

import pytest
from kubewright import Warnings
from made import LOG, a_set

from sidecarset.validation import faults_of, warn

NATIVE = {"name": "proxy", "image": "envoy:1.31", "restartPolicy": "Always"}


def faults(name: str = "logs", **spec: Any) -> dict[str, str]:
    """What is wrong, by field."""
    return {error.path: str(error) for error in faults_of(a_set(name, **spec))}


def test_a_plain_set_is_valid() -> None:
    assert faults() == {}


@pytest.mark.parametrize("name", ["a.b", "a" * 64, "Logs", "-a"])
def test_a_name_is_a_dns_label(name: str) -> None:
    assert list(faults(name)) == ["metadata.name"]


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"matchLabels": {}},
        {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]},
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        {"matchLabels": {"a": "not a label value"}},
    ],
)
@pytest.mark.parametrize("field", ["selector", "namespaceSelector"])
def test_a_selector_is_well_formed_and_names_a_label(field: str, selector: Any) -> None:
    assert list(faults(**{field: selector})) == [f"spec.{field}"]


def test_every_fault_is_found_at_once() -> None:
    found = faults(
        selector={},
        containers=[{"name": "log"}, {**LOG, "name": "Mixed"}, {**LOG, "name": "a", "image": " b "}],
        initContainers=[{**LOG, "name": "a", "volumeMounts": [{"name": "nowhere", "mountPath": "/x"}]}],
        updateStrategy={"maxUnavailable": 0},
    )

    assert sorted(found) == [
        "spec.containers[0].image",
        "spec.containers[1].name",
        "spec.containers[2].image",
        "spec.initContainers[0].name",
        "spec.initContainers[0].volumeMounts[0].name",
        "spec.selector",
        "spec.updateStrategy.maxUnavailable",
    ]


def test_a_name_is_used_once_in_each_list() -> None:
    assert list(faults(containers=[LOG, LOG])) == ["spec.containers[1].name"]
    assert list(faults(volumes=[{"name": "a"}, {"name": "a"}])) == ["spec.volumes[1].name"]


def test_a_set_brings_at_least_one_container() -> None:
    assert list(faults(containers=[])) == ["spec.containers"]
    assert faults(containers=[], initContainers=[LOG]) == {}


def test_devices_need_a_volume_too() -> None:
    device = {**LOG, "volumeDevices": [{"name": "disk", "devicePath": "/dev/xvda"}]}

    assert list(faults(containers=[device])) == ["spec.containers[0].volumeDevices[0].name"]
    assert faults(containers=[device], volumes=[{"name": "disk", "emptyDir": {}}]) == {}


def test_an_init_container_that_never_ends_is_only_for_sets_that_do_not_update() -> None:
    assert list(faults(initContainers=[NATIVE])) == ["spec.initContainers[0].restartPolicy"]
    assert faults(initContainers=[NATIVE], updateStrategy={"type": "NotUpdate"}) == {}


@pytest.mark.parametrize("partition", [-1, "101%", "-1%", "a", "3"])
def test_a_partition_is_a_number_or_a_percentage(partition: Any) -> None:
    assert list(faults(updateStrategy={"partition": partition})) == ["spec.updateStrategy.partition"]


@pytest.mark.parametrize("limit", [0, -1, "0%", "101%", "half"])
def test_at_least_one_pod_may_be_unavailable(limit: Any) -> None:
    assert list(faults(updateStrategy={"maxUnavailable": limit})) == ["spec.updateStrategy.maxUnavailable"]


@pytest.mark.parametrize("strategy", [{"partition": 0, "maxUnavailable": "1%"}, {"partition": "100%"}])
def test_the_ends_of_the_ranges_are_allowed(strategy: Any) -> None:
    assert faults(updateStrategy=strategy) == {}


def test_a_selector_and_a_partition_exclude_each_other() -> None:
    selector = {"matchLabels": {"canary": "yes"}}

    assert list(faults(updateStrategy={"selector": selector, "partition": 1})) == ["spec.updateStrategy.partition"]
    assert list(faults(updateStrategy={"selector": {}})) == ["spec.updateStrategy.selector"]
    assert faults(updateStrategy={"selector": selector, "partition": "0%"}) == {}


def test_a_volume_that_nobody_mounts_is_worth_a_warning() -> None:
    sidecarset, warnings = a_set(volumes=[{"name": "spare", "emptyDir": {}}]), Warnings()

    warn(sidecarset, warnings)

    assert not faults_of(sidecarset)
    assert list(warnings) == ["spec.volumes: spare is mounted by none of the containers, so no pod gets it"]
