"""The contents of Endpoints and EndpointSlices."""

from __future__ import annotations

from typing import Any

from kubewright.api.codec import from_tree, to_tree
from kubewright.cluster.controller_manager.services.endpoints import (
    endpoint_groups,
    endpoint_labels,
    endpoint_subsets,
    slice_labels,
)
from kubewright.k8s.core.v1 import Pod, Service


def service(*, labels: dict[str, str] | None = None, **spec: Any) -> Service:
    spec.setdefault("ports", [{"port": 8080, "targetPort": 80, "protocol": "TCP"}])
    spec.setdefault("clusterIP", "10.0.0.7")
    metadata = {"name": "web", "namespace": "shop", "labels": labels or {}}
    return from_tree(
        Service, {"metadata": metadata, "spec": {"selector": {"app": "web"}, "ipFamilies": ["IPv4"], **spec}}
    )


def pod(name: str, ip: str | None, *, ready: bool = True, terminating: bool = False, **spec: Any) -> Pod:
    metadata: dict[str, Any] = {"name": name, "namespace": "shop", "uid": name}
    if terminating:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    status: dict[str, Any] = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
    }
    if ip:
        status |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    spec.setdefault("containers", [{"name": "main", "image": "nginx"}])
    return from_tree(Pod, {"metadata": metadata, "spec": {"nodeName": "node-1", **spec}, "status": status})


def addresses(given: Service, *pods: Pod) -> list[tuple[list[str], list[str], list[tuple[str | None, int]]]]:
    return [
        (
            [item.ip for item in subset.addresses or ()],
            [item.ip for item in subset.not_ready_addresses or ()],
            [(port.name, port.port) for port in subset.ports or ()],
        )
        for subset in endpoint_subsets(given, pods)
    ]


def test_ready_pods_are_addresses_and_others_are_not_ready() -> None:
    found = addresses(service(), pod("b", "10.244.0.10"), pod("a", "10.244.0.9"), pod("c", "10.244.0.3", ready=False))

    assert found == [(["10.244.0.9", "10.244.0.10"], ["10.244.0.3"], [(None, 80)])]


def test_pods_without_an_address_and_finished_pods_are_left_out() -> None:
    over = pod("b", "10.244.0.2")
    over.status.phase = "Succeeded"

    assert addresses(service(), pod("a", None), over, pod("c", "10.244.0.3", terminating=True)) == []


def test_a_service_may_publish_addresses_that_are_not_ready() -> None:
    tolerant = service(publishNotReadyAddresses=True)

    found = addresses(tolerant, pod("a", "10.244.0.1", ready=False), pod("b", "10.244.0.2", terminating=True))

    assert found == [(["10.244.0.1", "10.244.0.2"], [], [(None, 80)])]


def test_named_ports_are_looked_up_in_each_pod() -> None:
    given = service(ports=[{"name": "http", "port": 80, "targetPort": "web"}])
    old = [{"name": "main", "image": "a", "ports": [{"name": "web", "containerPort": 8080}]}]
    new = [{"name": "main", "image": "a", "ports": [{"name": "web", "containerPort": 9090}]}]

    found = addresses(
        given,
        pod("a", "10.244.0.1", containers=old),
        pod("b", "10.244.0.2", containers=new),
        pod("c", "10.244.0.3"),
    )

    assert found == [(["10.244.0.1"], [], [("http", 8080)]), (["10.244.0.2"], [], [("http", 9090)])]


def test_a_headless_service_needs_no_ports_and_gives_host_names() -> None:
    given = service(clusterIP="None", ports=None)

    (subset,) = endpoint_subsets(given, [pod("a", "10.244.0.1", hostname="web-0", subdomain="web")])

    assert subset.ports is None
    assert subset.addresses is not None
    assert subset.addresses[0].hostname == "web-0"
    assert "service.kubernetes.io/headless" in endpoint_labels(given)


def test_a_loopback_address_is_left_out() -> None:
    assert addresses(service(), pod("a", "127.0.0.1")) == []


def test_slices_have_the_conditions_ready_serving_and_terminating() -> None:
    groups = endpoint_groups(service(), [pod("b", "10.244.0.2", terminating=True), pod("a", "10.244.0.1")])

    (((family, ports), endpoints),) = groups.items()
    assert (family, ports) == ("IPv4", (("", 80, "TCP", None),))
    assert [to_tree(item)["conditions"] for item in endpoints] == [
        {"ready": True, "serving": True, "terminating": False},
        {"ready": False, "serving": True, "terminating": True},
    ]
    assert endpoints[0].target_ref is not None
    assert endpoints[0].target_ref.name == "a"


def test_a_service_without_pods_has_an_empty_slice_of_each_family() -> None:
    assert endpoint_groups(service(ipFamilies=["IPv4", "IPv6"]), []) == {("IPv4", ()): [], ("IPv6", ()): []}


def test_labels_of_the_service_are_copied_except_reserved_ones() -> None:
    given = service(labels={"team": "a", "kubernetes.io/service-name": "lie"})

    assert slice_labels(given) == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert endpoint_labels(given)["endpoints.kubernetes.io/managed-by"] == "endpoint-controller"
