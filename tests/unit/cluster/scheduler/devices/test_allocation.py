"""Which devices claims get: the first choice that satisfies all of them, or why there is none."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.api.codec import from_tree
from kubewright.cluster.scheduler.devices.allocation import Allocator, Choice
from kubewright.cluster.scheduler.devices.pools import DeviceId
from kubewright.cluster.scheduler.devices.requests import missing_class
from kubewright.cluster.scheduler.filters import NodeInfo, Residents
from kubewright.errors import Terminal
from kubewright.k8s.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice

DRIVER = "gpu.example.com"


def node(name: str = "node-1", **labels: str) -> NodeInfo:
    return NodeInfo(name=name, labels=labels, taints=(), unschedulable=False, allocatable={}, residents=Residents())


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
    return {"name": name, "exactly": wish(*selectors, **rest)}


def wish(*selectors: str, **rest: Any) -> dict[str, Any]:
    cel = [{"cel": {"expression": text}} for text in selectors]
    return {"deviceClassName": "any", "selectors": cel, **rest}


def classes(*selectors: str) -> dict[str, DeviceClass]:
    spec = {"selectors": [{"cel": {"expression": text}} for text in selectors]}
    return {"any": from_tree(DeviceClass, {"metadata": {"name": "any"}, "spec": spec})}


def choose(
    *claims: ResourceClaim,
    slices: list[ResourceSlice],
    taken: dict[DeviceId, int] | None = None,
    where: NodeInfo | None = None,
    selectors: tuple[str, ...] = (),
) -> Choice:
    return Allocator(claims, classes=classes(*selectors), slices=slices, taken=taken or {}).choose(where or node())


def names(choice: Choice) -> list[list[str]]:
    assert not choice.reason
    return [[result["device"] for result in each["devices"]["results"]] for each in choice.allocations]


def test_claims_get_different_devices() -> None:
    offered = [a_slice("a", "b", "c")]

    assert names(choose(claim(exactly()), claim(exactly(count=2), name="d"), slices=offered)) == [["a"], ["b", "c"]]


def test_devices_that_others_have_are_not_given_again() -> None:
    taken = {(DRIVER, "p", "a"): 1}

    assert names(choose(claim(exactly()), slices=[a_slice("a", "b")], taken=taken)) == [["b"]]
    assert (
        choose(claim(exactly(count=2)), slices=[a_slice("a", "b")], taken=taken).reason == "cannot allocate all claims"
    )


def test_a_choice_that_leads_nowhere_is_taken_back() -> None:
    offered = [a_slice(numbered("a", 1), numbered("b", 2))]
    first = f'device.attributes["{DRIVER}"].n == 1'

    # The first request would like any device, and takes the only one that the second can use.
    assert names(choose(claim(exactly("any"), exactly("one", first)), slices=offered)) == [["b", "a"]]


def test_of_alternatives_a_later_one_is_taken_if_that_lets_the_rest_succeed() -> None:
    offered = [a_slice(numbered("a", 1), numbered("b", 2))]
    first = f'device.attributes["{DRIVER}"].n == 1'
    either = {"name": "x", "firstAvailable": [{"name": "two", **wish(count=2)}, {"name": "one", **wish()}]}

    choice = choose(claim(either, exactly("only", first)), slices=offered)

    results = choice.allocations[0]["devices"]["results"]
    assert [(each["request"], each["device"]) for each in results] == [("x/one", "b"), ("only", "a")]
    assert choice.score == 7
    assert choose(claim(either), slices=offered).score == 8


def test_constraints_hold_among_the_requests_they_name() -> None:
    offered = [a_slice(numbered("a", 1), numbered("b", 2), numbered("c", 1), "d")]
    same = {"matchAttribute": f"{DRIVER}/n", "requests": ["one", "two"]}

    choice = choose(claim(exactly("other"), exactly("one"), exactly("two"), constraints=[same]), slices=offered)

    assert names(choice) == [["b", "a", "c"]]


def test_a_number_is_not_the_same_as_a_text() -> None:
    text = {"name": "b", "attributes": {f"{DRIVER}/n": {"string": "1"}}}
    same = {"matchAttribute": f"{DRIVER}/n"}

    refused = choose(claim(exactly(count=2), constraints=[same]), slices=[a_slice(numbered("a", 1), text)])

    assert refused.reason == "cannot allocate all claims"


def test_all_devices_that_match_or_an_error_if_a_constraint_forbids_it() -> None:
    offered = [a_slice(numbered("a", 1), numbered("b", 2))]
    every = exactly(allocationMode="All")

    assert names(choose(claim(every), slices=offered)) == [["a", "b"]]
    assert choose(claim(every), slices=[a_slice()]).reason == "cannot allocate all claims"
    with pytest.raises(Terminal, match=r"cannot add device gpu.example.com/p/b because a claim constraint"):
        choose(claim(every, constraints=[{"matchAttribute": f"{DRIVER}/n"}]), slices=offered)


def test_nothing_is_taken_from_a_pool_that_is_incomplete_or_invalid() -> None:
    half, double = [a_slice("a", count=2)], [a_slice("a", "a")]

    assert choose(claim(exactly()), slices=half).reason == "cannot allocate all claims"
    assert choose(claim(exactly()), slices=double).reason == "invalid resource pools were encountered"
    with pytest.raises(Terminal, match=r"resource pool gpu.example.com/p is currently being updated"):
        choose(claim(exactly(allocationMode="All")), slices=half)
    with pytest.raises(Terminal, match=r"resource pool gpu.example.com/p is currently invalid"):
        choose(claim(exactly(allocationMode="All")), slices=double)


def test_the_newest_generation_of_a_pool_counts() -> None:
    old, new = a_slice("a", name="old"), a_slice("b", name="new", generation=2)
    elsewhere = a_slice("c", name="far", generation=3, nodeName="node-9")

    assert names(choose(claim(exactly()), slices=[old, new])) == [["b"]]
    assert choose(claim(exactly()), slices=[old, new, elsewhere]).reason == "cannot allocate all claims"


def test_a_pool_is_complete_with_slices_for_other_nodes() -> None:
    here = a_slice("a", name="here", count=2, nodeName="node-1")
    there = a_slice("b", name="there", count=2, nodeName="node-2")

    assert names(choose(claim(exactly()), slices=[here, there])) == [["a"]]
    assert names(choose(claim(exactly()), slices=[here, there], where=node("node-2"))) == [["b"]]


def test_where_devices_can_be_used_is_where_all_of_them_can() -> None:
    east = {"key": "zone", "operator": "In", "values": ["east"]}
    fast = {"key": "fast", "operator": "Exists"}

    def near(name: str, *requirements: dict[str, Any]) -> ResourceSlice:
        terms = {"nodeSelectorTerms": [{"matchExpressions": list(requirements)}]}
        return a_slice(name, name=name, pool=name, nodeSelector=terms)

    offered = [near("a", east), near("b", east, fast)]
    choice = choose(claim(exactly(count=2)), slices=offered, where=node(zone="east", fast="yes"))

    assert choice.allocations[0]["nodeSelector"] == {"nodeSelectorTerms": [{"matchExpressions": [east, fast]}]}
    assert choose(claim(exactly(count=2)), slices=offered, where=node(zone="east")).reason


def test_administrators_get_what_others_have_but_nothing_twice() -> None:
    taken = {(DRIVER, "p", "a"): 1}
    admin = exactly(adminAccess=True)

    choice = choose(claim(admin), slices=[a_slice("a")], taken=taken)

    assert choice.allocations[0]["devices"]["results"][0]["adminAccess"] is True
    assert choice.devices == (frozenset(),)
    twice = exactly(adminAccess=True, count=2)
    assert choose(claim(twice), slices=[a_slice("a")], taken=taken).reason == "cannot allocate all claims"


@pytest.mark.parametrize(
    "beyond",
    [
        {"taints": [{"key": "broken", "effect": "NoSchedule"}]},
        {"consumesCounters": [{"counterSet": "s", "counters": {"n": {"value": "1"}}}]},
        {"bindingConditions": ["attached"], "bindingFailureConditions": ["failed"]},
    ],
    ids=["taints", "counters", "conditions"],
)
def test_devices_that_need_more_than_is_known_here_are_left_alone(beyond: dict[str, Any]) -> None:
    offered = [a_slice({"name": "a", **beyond}, "b")]

    assert names(choose(claim(exactly()), slices=offered)) == [["b"]]
    assert choose(claim(exactly(allocationMode="All")), slices=offered).reason == "cannot allocate all claims"


def test_slices_of_partitions_are_left_alone() -> None:
    counted = a_slice("a", allNodes=True, sharedCounters=[{"name": "s", "counters": {"n": {"value": "1"}}}])

    assert choose(claim(exactly()), slices=[counted]).reason == "cannot allocate all claims"
    assert choose(claim(exactly()), slices=[a_slice("a", perDeviceNodeSelection=True)]).reason


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
def test_a_claim_that_is_wrong_is_so_on_every_node(request_: dict[str, Any], problem: str) -> None:
    with pytest.raises(Terminal, match=problem):
        choose(claim(request_), slices=[a_slice(numbered("a", 1))])


def test_a_constraint_of_another_kind_is_an_error() -> None:
    with pytest.raises(Terminal, match="claim ns/c, constraint #0: empty constraint"):
        choose(claim(exactly(), constraints=[{"distinctAttribute": f"{DRIVER}/n"}]), slices=[a_slice("a")])


def test_a_class_that_cannot_be_evaluated_is_named() -> None:
    with pytest.raises(Terminal, match=r"^class any: selector #1: CEL runtime error: no such key: x$"):
        choose(claim(exactly()), slices=[a_slice("a")], selectors=("true", f'device.attributes["{DRIVER}"].x == 1'))


def test_a_search_that_takes_too_long_is_given_up() -> None:
    devices = [numbered(f"d{number}", number) for number in range(64)]
    pairs = claim(exactly("r", count=8), exactly("never", "false"))

    assert choose(pairs, slices=[a_slice(*devices)]).reason == "timed out trying to allocate devices"


def test_a_class_that_is_not_there_is_named_with_the_request() -> None:
    either = {"name": "x", "firstAvailable": [{"name": "y", "deviceClassName": "other"}]}

    assert missing_class(claim(exactly(), either), classes()) == "request x/y: device class other does not exist"
    assert missing_class(claim(exactly()), classes()) == ""
