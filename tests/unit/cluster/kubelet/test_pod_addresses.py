"""Addresses of simulated pods."""

from __future__ import annotations

from tests.builders.pods import pod

from kubewright.cluster.kubelet.pod_addresses import PodAddresses


def test_each_pod_has_a_unique_address_and_keeps_it() -> None:
    addresses = PodAddresses()

    first, second = addresses.address_of(pod("a")), addresses.address_of(pod("b"))

    assert first != second
    assert addresses.address_of(pod("a")) == first


def test_an_address_in_the_status_is_kept_unless_it_is_in_use() -> None:
    addresses = PodAddresses()

    assert addresses.address_of(pod("a", status={"podIP": "10.244.7.7"})) == "10.244.7.7"
    assert addresses.address_of(pod("b", status={"podIP": "10.244.7.7"})) != "10.244.7.7"


def test_no_pod_gets_a_network_or_broadcast_address_and_free_ones_are_used_again() -> None:
    addresses = PodAddresses()
    given = {addresses.address_of(pod(str(number))) for number in range(600)}

    assert len(given) == 600
    assert not any(address.endswith((".0", ".255")) for address in given)
    for number in range(600):
        addresses.release(str(number))
    assert addresses.address_of(pod("again")) not in given  # not at once
