"""Addresses and node ports: handed out as kube-apiserver does, never twice, and given back."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kubewright._base.yaml import load_all
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import apply_merge_patch
from kubewright.apiserver.builtin.defaults import apply_defaults
from kubewright.apiserver.builtin.preparation.strategies import prepare_for_create, prepare_for_update
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.wire.status_errors import StatusError

Tree = dict[str, Any]

HERE = Path(__file__).parent
CASES = {case["name"]: case["steps"] for case in load_all((HERE / "services.yaml").read_text())}
ANSWERS: dict[str, list[Any]] = json.loads((HERE / "services.json").read_text())
SERVICE = GroupVersionKind("", "v1", "Service")
KUBERNETES = {"spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}}


def allocator(**options: Any) -> ServiceAllocator:
    made = ServiceAllocator(chance=random.Random(1), **options)
    made.rebuild([KUBERNETES])
    return made


def service(**spec: Any) -> Tree:
    tree: Tree = {"metadata": {"name": "s", "creationTimestamp": "t"}, "spec": {"ports": [{"port": 80}], **spec}}
    apply_defaults(SERVICE, tree)
    prepare_for_create(SERVICE, tree)
    return tree


def masked(spec: Tree, asked: str) -> Tree:
    """The spec with numbers instead of what the server chose."""
    told: Tree = deepcopy(spec)
    chosen: dict[Any, str] = {}
    for holder in (told, *told.get("ports", [])):
        for name, value in holder.items():
            values = value if isinstance(value, list) else [value]
            if name in ("clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"):
                shown = [v if str(v) in asked else chosen.setdefault(v, f"chosen {len(chosen)}") for v in values]
                holder[name] = shown if isinstance(value, list) else shown[0]
    return told


def refusal(addresses: ServiceAllocator, tree: Tree, old: Tree | None = None) -> str:
    """The error of an assignment that fails."""
    with pytest.raises(StatusError) as error:
        addresses.assign(tree, old)
    return str(error.value)


@pytest.mark.parametrize("name", CASES)
def test_service_changes_as_in_kube_apiserver(name: str) -> None:
    steps, addresses = CASES[name], allocator()
    old: Tree | None = None

    for step, answer in zip(steps, ANSWERS[name], strict=True):
        if old is None:
            tree: Tree = {"metadata": {"name": "s", "creationTimestamp": "t"}, "spec": deepcopy(step)}
        else:
            tree = deepcopy(apply_merge_patch(old, {"spec": step}))
        apply_defaults(SERVICE, tree)
        try:
            with addresses.assign(tree, old) as reservation:
                if old is None:
                    prepare_for_create(SERVICE, tree)
                else:
                    prepare_for_update(SERVICE, tree, old)
                reservation.keep()
            told: Any = masked(tree["spec"], json.dumps(steps))
        except StatusError as error:
            told = str(error)
        assert answer == told
        old = tree


def test_released_members_can_be_allocated_again() -> None:
    addresses = allocator(networks=("10.0.0.0/30",))
    one, two = service(), service()

    addresses.assign(one).keep()
    with pytest.raises(StatusError, match="failed to allocate a serviceIP: range is full"):
        addresses.assign(two)
    addresses.release(one)

    addresses.assign(two).keep()
    assert two["spec"]["clusterIP"] == "10.0.0.2"


def test_a_reservation_that_is_not_kept_allocates_nothing() -> None:
    addresses = allocator(networks=("10.0.0.0/30",))

    with addresses.assign(service()):
        pass
    addresses.assign(service()).keep()


def test_a_failure_allocates_nothing() -> None:
    addresses = allocator(networks=("10.0.0.0/30",))
    bad = service(type="NodePort", ports=[{"port": 80, "nodePort": 80}])

    assert "spec.ports[0].nodePort" in refusal(addresses, bad)
    addresses.assign(service()).keep()


def test_no_two_services_get_the_same() -> None:
    addresses = allocator()
    services = [service(type="NodePort") for _ in range(200)]

    for each in services:
        addresses.assign(each).keep()

    assert len({each["spec"]["clusterIP"] for each in services}) == 200
    assert len({each["spec"]["ports"][0]["nodePort"] for each in services}) == 200


def test_rebuilt_from_services_it_knows_what_is_allocated() -> None:
    first, second = allocator(), allocator()
    taken = service(type="NodePort", clusterIP="10.0.0.7", ports=[{"port": 80, "nodePort": 30007}])
    first.assign(taken).keep()

    second.rebuild([taken])
    again = refusal(second, service(clusterIP="10.0.0.7"))
    port = refusal(second, service(type="NodePort", ports=[{"port": 80, "nodePort": 30007}]))

    assert "provided IP is already allocated" in again
    assert "provided port is already allocated" in port


def test_a_type_without_node_ports_releases_them() -> None:
    addresses = allocator()
    before = service(type="NodePort", ports=[{"port": 80, "nodePort": 30007}])
    addresses.assign(before).keep()
    after = deepcopy(before)
    after["spec"]["type"] = "ClusterIP"

    with addresses.assign(after, before) as reservation:
        prepare_for_update(SERVICE, after, before)
        reservation.keep()

    assert "nodePort" not in after["spec"]["ports"][0]
    addresses.assign(service(type="NodePort", ports=[{"port": 80, "nodePort": 30007}])).keep()


def test_both_families_are_allocated_in_a_dual_stack_cluster() -> None:
    addresses = allocator(networks=("10.0.0.0/24", "fd00::/108"))
    both, one = service(ipFamilyPolicy="PreferDualStack"), service()

    addresses.assign(both).keep()
    addresses.assign(one).keep()

    assert both["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
    assert [address.count(":") > 0 for address in both["spec"]["clusterIPs"]] == [False, True]
    assert len(one["spec"]["clusterIPs"]) == 1


def test_the_second_family_is_released_with_the_policy() -> None:
    addresses = allocator(networks=("10.0.0.0/24", "fd00::/108"))
    both = service(ipFamilyPolicy="RequireDualStack")
    addresses.assign(both).keep()
    one, wrong = deepcopy(both), deepcopy(both)
    one["spec"]["ipFamilyPolicy"] = "SingleStack"
    wrong["spec"]["clusterIPs"] = wrong["spec"]["clusterIPs"][:1]

    refused = refusal(addresses, wrong, both)
    addresses.assign(one, both).keep()

    assert "must be 'SingleStack' to release the secondary cluster IP" in refused
    assert len(one["spec"]["clusterIPs"]) == 1
    second = service(clusterIP="10.0.0.200", clusterIPs=["10.0.0.200", both["spec"]["clusterIPs"][1]])
    second["spec"]["ipFamilyPolicy"] = "RequireDualStack"
    addresses.assign(second).keep()


def test_an_extra_network_allocates_when_requested_or_when_the_first_is_full() -> None:
    services = allocator(networks=["10.0.0.0/30"])
    taken = [service(), service(clusterIP="10.9.0.5", clusterIPs=["10.9.0.5"])]
    services.assign(taken[0]).keep()

    services.set_extra_networks(["10.0.0.0/30", "10.9.0.0/29"], [KUBERNETES, *taken])

    more = service()
    services.assign(more).keep()
    assert more["spec"]["clusterIP"].startswith("10.9.0.")
    assert "failed to allocate IP 10.9.0.5: provided IP is already allocated" in refusal(
        services, service(clusterIP="10.9.0.5", clusterIPs=["10.9.0.5"])
    )
    services.set_extra_networks([], [])
    assert "failed to allocate IP 10.9.0.6: the provided network does not match the current range" in refusal(
        services, service(clusterIP="10.9.0.6", clusterIPs=["10.9.0.6"])
    )
