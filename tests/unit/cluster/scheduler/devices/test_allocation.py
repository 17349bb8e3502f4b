"""The allocator: the first allocation that satisfies all claims, or the reason why there is none."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.api.codec import from_tree
from kubewright.cluster.scheduler.devices.allocation import Allocator, NodeAllocation
from kubewright.cluster.scheduler.devices.pools import DeviceID
from kubewright.cluster.scheduler.devices.requests import missing_class
from kubewright.cluster.scheduler.node_info import AssignedPods, NodeInfo
from kubewright.errors import Terminal
from kubewright.k8s.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice

DRIVER = "gpu.example.com"


def node(name: str = "node-1", **labels: str) -> NodeInfo:
    return NodeInfo(name=name, labels=labels, taints=(), unschedulable=False, allocatable={}, assigned=AssignedPods())


def a_slice(
    *devices: Any, name: str = "s", pool: str = "p", count: int = 1, generation: int = 1, **spec: Any
) -> ResourceSlice:
    trees = [{"name": each} if isinstance(each, str) else each for each in devices]
    content: dict[str, Any] = {
        "driver": DRIVER,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        "devices": trees,
        **(spec or {"allNodes": True}),
    }
    return from_tree(ResourceSlice, {"metadata": {"name": name}, "spec": content})


def numbered(name: str, number: int) -> dict[str, Any]:
    return {"name": name, "attributes": {"n": {"int": number}}}


def claim(*requests: dict[str, Any], name: str = "c", **devices: Any) -> ResourceClaim:
    spec = {"devices": {"requests": list(requests), **devices}}
    return from_tree(ResourceClaim, {"metadata": {"name": name, "namespace": "ns"}, "spec": spec})


def exactly(name: str = "r", *selectors: str, **rest: Any) -> dict[str, Any]:
    return {"name": name, "exactly": request_for(*selectors, **rest)}


def request_for(*selectors: str, **rest: Any) -> dict[str, Any]:
    cel = [{"cel": {"expression": text}} for text in selectors]
    return {"deviceClassName": "any", "selectors": cel, **rest}


def classes(*selectors: str) -> dict[str, DeviceClass]:
    spec = {"selectors": [{"cel": {"expression": text}} for text in selectors]}
    return {"any": from_tree(DeviceClass, {"metadata": {"name": "any"}, "spec": spec})}


def allocate(
    *claims: ResourceClaim,
    slices: list[ResourceSlice],
    allocated: dict[DeviceID, int] | None = None,
    on_node: NodeInfo | None = None,
    selectors: tuple[str, ...] = (),
) -> NodeAllocation:
    return Allocator(claims, classes=classes(*selectors), slices=slices, allocated=allocated or {}).allocate(
        on_node or node()
    )


def names(allocation: NodeAllocation) -> list[list[str]]:
    assert not allocation.reason
    return [[result["device"] for result in each["devices"]["results"]] for each in allocation.allocations]


def test_claims_get_different_devices() -> None:
    published = [a_slice("a", "b", "c")]

    assert names(allocate(claim(exactly()), claim(exactly(count=2), name="d"), slices=published)) == [["a"], ["b", "c"]]


def test_allocated_devices_are_not_allocated_again() -> None:
    allocated = {(DRIVER, "p", "a"): 1}

    assert names(allocate(claim(exactly()), slices=[a_slice("a", "b")], allocated=allocated)) == [["b"]]
    assert (
        allocate(claim(exactly(count=2)), slices=[a_slice("a", "b")], allocated=allocated).reason
        == "cannot allocate all claims"
    )


def test_the_search_backtracks() -> None:
    published = [a_slice(numbered("a", 1), numbered("b", 2))]
    first = f'device.attributes["{DRIVER}"].n == 1'

    # Any device satisfies the first request, but the second can only use the first device.
    assert names(allocate(claim(exactly("any"), exactly("one", first)), slices=published)) == [["b", "a"]]


def test_of_alternatives_a_later_one_is_taken_if_that_lets_the_rest_succeed() -> None:
    published = [a_slice(numbered("a", 1), numbered("b", 2))]
    first = f'device.attributes["{DRIVER}"].n == 1'
    either = {
        "name": "x",
        "firstAvailable": [{"name": "two", **request_for(count=2)}, {"name": "one", **request_for()}],
    }

    allocation = allocate(claim(either, exactly("only", first)), slices=published)

    results = allocation.allocations[0]["devices"]["results"]
    assert [(each["request"], each["device"]) for each in results] == [("x/one", "b"), ("only", "a")]
    assert allocation.score == 7
    assert allocate(claim(either), slices=published).score == 8


def test_constraints_apply_to_the_requests_they_name() -> None:
    published = [a_slice(numbered("a", 1), numbered("b", 2), numbered("c", 1), "d")]
    same = {"matchAttribute": f"{DRIVER}/n", "requests": ["one", "two"]}

    allocation = allocate(claim(exactly("other"), exactly("one"), exactly("two"), constraints=[same]), slices=published)

    assert names(allocation) == [["b", "a", "c"]]


def test_attributes_of_different_types_are_never_equal() -> None:
    text = {"name": "b", "attributes": {f"{DRIVER}/n": {"string": "1"}}}
    same = {"matchAttribute": f"{DRIVER}/n"}

    allocation = allocate(claim(exactly(count=2), constraints=[same]), slices=[a_slice(numbered("a", 1), text)])

    assert allocation.reason == "cannot allocate all claims"


def test_all_devices_that_match_or_an_error_if_a_constraint_forbids_it() -> None:
    published = [a_slice(numbered("a", 1), numbered("b", 2))]
    every = exactly(allocationMode="All")

    assert names(allocate(claim(every), slices=published)) == [["a", "b"]]
    assert allocate(claim(every), slices=[a_slice()]).reason == "cannot allocate all claims"
    with pytest.raises(Terminal, match=r"cannot add device gpu.example.com/p/b because a claim constraint"):
        allocate(claim(every, constraints=[{"matchAttribute": f"{DRIVER}/n"}]), slices=published)


def test_devices_of_an_incomplete_or_invalid_pool_are_not_allocated() -> None:
    half, double = [a_slice("a", count=2)], [a_slice("a", "a")]

    assert allocate(claim(exactly()), slices=half).reason == "cannot allocate all claims"
    assert allocate(claim(exactly()), slices=double).reason == "invalid resource pools were encountered"
    with pytest.raises(Terminal, match=r"resource pool gpu.example.com/p is currently being updated"):
        allocate(claim(exactly(allocationMode="All")), slices=half)
    with pytest.raises(Terminal, match=r"resource pool gpu.example.com/p is currently invalid"):
        allocate(claim(exactly(allocationMode="All")), slices=double)


def test_the_newest_generation_of_a_pool_counts() -> None:
    old, new = a_slice("a", name="old"), a_slice("b", name="new", generation=2)
    other_node = a_slice("c", name="far", generation=3, nodeName="node-9")

    assert names(allocate(claim(exactly()), slices=[old, new])) == [["b"]]
    assert allocate(claim(exactly()), slices=[old, new, other_node]).reason == "cannot allocate all claims"


def test_a_pool_is_complete_with_publishedfor_other_nodes() -> None:
    here = a_slice("a", name="here", count=2, nodeName="node-1")
    there = a_slice("b", name="there", count=2, nodeName="node-2")

    assert names(allocate(claim(exactly()), slices=[here, there])) == [["a"]]
    assert names(allocate(claim(exactly()), slices=[here, there], on_node=node("node-2"))) == [["b"]]


def test_the_node_selector_is_that_of_all_devices() -> None:
    east = {"key": "zone", "operator": "In", "values": ["east"]}
    fast = {"key": "fast", "operator": "Exists"}

    def near(name: str, *requirements: dict[str, Any]) -> ResourceSlice:
        terms = {"nodeSelectorTerms": [{"matchExpressions": list(requirements)}]}
        return a_slice(name, name=name, pool=name, nodeSelector=terms)

    published = [near("a", east), near("b", east, fast)]
    allocation = allocate(claim(exactly(count=2)), slices=published, on_node=node(zone="east", fast="yes"))

    assert allocation.allocations[0]["nodeSelector"] == {"nodeSelectorTerms": [{"matchExpressions": [east, fast]}]}
    assert allocate(claim(exactly(count=2)), slices=published, on_node=node(zone="east")).reason


def test_admin_access_shares_devices_of_other_claims() -> None:
    allocated = {(DRIVER, "p", "a"): 1}
    admin = exactly(adminAccess=True)

    allocation = allocate(claim(admin), slices=[a_slice("a")], allocated=allocated)

    assert allocation.allocations[0]["devices"]["results"][0]["adminAccess"] is True
    assert allocation.devices == (frozenset(),)
    twice = exactly(adminAccess=True, count=2)
    assert allocate(claim(twice), slices=[a_slice("a")], allocated=allocated).reason == "cannot allocate all claims"


@pytest.mark.parametrize(
    "unsupported",
    [
        {"taints": [{"key": "broken", "effect": "NoSchedule"}]},
        {"consumesCounters": [{"counterSet": "s", "counters": {"n": {"value": "1"}}}]},
        {"bindingConditions": ["attached"], "bindingFailureConditions": ["failed"]},
    ],
    ids=["taints", "counters", "conditions"],
)
def test_devices_with_unsupported_features_are_not_allocated(unsupported: dict[str, Any]) -> None:
    published = [a_slice({"name": "a", **unsupported}, "b")]

    assert names(allocate(claim(exactly()), slices=published)) == [["b"]]
    assert allocate(claim(exactly(allocationMode="All")), slices=published).reason == "cannot allocate all claims"


def test_slices_of_partitionable_devices_are_ignored() -> None:
    counted = a_slice("a", allNodes=True, sharedCounters=[{"name": "s", "counters": {"n": {"value": "1"}}}])

    assert allocate(claim(exactly()), slices=[counted]).reason == "cannot allocate all claims"
    assert allocate(claim(exactly()), slices=[a_slice("a", perDeviceNodeSelection=True)]).reason


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (exactly(capacity={"requests": {"memory": "1Gi"}}), "claim ns/c, request r: capacity is requested, which"),
        (exactly(allocationMode="Some"), "claim ns/c, request r: unsupported count mode Some"),
        (exactly(count=33), "claim ns/c: number of requested devices 33 exceeds the claim limit of 32"),
        ({"name": "r"}, "claim ns/c, request r: unknown request type"),
        (exactly("r", "device.colour"), "claim ns/c: selector #0: CEL compile error: .*undefined field 'colour'"),
        (exactly("r", "1 + 1"), "CEL compile error: must evaluate to bool or the unknown type, not int"),
        (exactly("r", f'device.attributes["{DRIVER}"].n'), "CEL result of type int could not be converted to bool"),
    ],
)
def test_an_invalid_claim_is_an_error(request_: dict[str, Any], problem: str) -> None:
    with pytest.raises(Terminal, match=problem):
        allocate(claim(request_), slices=[a_slice(numbered("a", 1))])


def test_an_unknown_constraint_is_an_error() -> None:
    with pytest.raises(Terminal, match="claim ns/c, constraint #0: empty constraint"):
        allocate(claim(exactly(), constraints=[{"distinctAttribute": f"{DRIVER}/n"}]), slices=[a_slice("a")])


def test_the_error_names_a_class_whose_selector_fails() -> None:
    with pytest.raises(Terminal, match=r"^class any: selector #1: CEL runtime error: no such key: x$"):
        allocate(claim(exactly()), slices=[a_slice("a")], selectors=("true", f'device.attributes["{DRIVER}"].x == 1'))


def test_a_search_that_takes_too_long_times_out() -> None:
    devices = [numbered(f"d{number}", number) for number in range(64)]
    pairs = claim(exactly("r", count=8), exactly("never", "false"))

    assert allocate(pairs, slices=[a_slice(*devices)]).reason == "timed out trying to allocate devices"


def test_the_error_names_a_missing_class_and_its_request() -> None:
    either = {"name": "x", "firstAvailable": [{"name": "y", "deviceClassName": "other"}]}

    assert missing_class(claim(exactly(), either), classes()) == "request x/y: device class other does not exist"
    assert missing_class(claim(exactly()), classes()) == ""
