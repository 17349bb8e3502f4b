"""How evenly pods have to be spread, counted as kube-scheduler counts."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.api.codec import from_tree
from kubewright.cluster.scheduler.filters import NodeInfo, Residents, node_info, pod_info, reasons_against
from kubewright.cluster.scheduler.topology_spread import UNEVEN, spreading_of
from kubewright.k8s.core.v1 import Node, Pod

WEB = {"matchLabels": {"app": "web"}}
MISSING = f"{UNEVEN} (missing required label)"


def node(name: str, zone: str = "", **spec: Any) -> NodeInfo:
    labels = {"kubernetes.io/hostname": name, **({"zone": zone} if zone else {})}
    return node_info(from_tree(Node, {"metadata": {"name": name, "labels": labels}, "spec": spec}), Residents())


def pod(name: str = "new", *, namespace: str = "shop", app: str = "web", **spec: Any) -> Pod:
    labels = {"app": app, "pod-template-hash": "abc"}
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": labels}
    return from_tree(Pod, {"metadata": metadata, "spec": {"containers": [], **spec}})


def constraint(**fields: Any) -> dict[str, Any]:
    default = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
    return {**default, **fields}


def refusals(given: Pod, *nodes: NodeInfo, leaving: str = "") -> list[str]:
    """What each node has against the pod."""
    spreading = spreading_of(given, pod_info(given), nodes, lambda uid: uid == leaving)
    assert spreading is not None
    return [", ".join(spreading.reasons(each)) for each in nodes]


def zones(**pods: list[Pod]) -> list[NodeInfo]:
    """A node in each zone, with its pods."""
    made = [node(f"node-{name}", name) for name in pods]
    for each, residents in zip(made, pods.values(), strict=True):
        for resident in residents:
            each.residents.add(pod_info(resident))
    return made


TWO = [pod("a1"), pod("a2")]


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        pytest.param({}, [UNEVEN, ""], id="no more than one more"),
        pytest.param({"maxSkew": 2}, [UNEVEN, ""], id="nor more than two"),
        pytest.param({"maxSkew": 3}, ["", ""], id="three are"),
        pytest.param({"labelSelector": {"matchLabels": {"app": "other"}}}, ["", ""], id="others do not count"),
        pytest.param({"labelSelector": None}, ["", ""], id="nobody is chosen"),
        pytest.param({"labelSelector": {}}, ["", ""], id="everybody is chosen"),
        pytest.param({"minDomains": 3, "maxSkew": 1}, [UNEVEN, ""], id="fewer zones than wanted, one is free"),
        pytest.param({"matchLabelKeys": ["pod-template-hash"]}, [UNEVEN, ""], id="of the same template"),
        pytest.param({"topologyKey": "kubernetes.io/hostname"}, [UNEVEN, ""], id="over nodes"),
        pytest.param({"topologyKey": "rack"}, [MISSING, MISSING], id="over what no node has"),
    ],
)
def test_a_zone_takes_no_more_than_its_share(fields: dict[str, Any], refused: list[str]) -> None:
    given = pod(topologySpreadConstraints=[constraint(**fields)])

    assert refusals(given, *zones(a=TWO, b=[])) == refused


def test_with_fewer_zones_than_wanted_nobody_may_have_more_than_the_skew() -> None:
    given = pod(topologySpreadConstraints=[constraint(minDomains=3)])

    assert refusals(given, *zones(a=[pod("a1")], b=[pod("b1")])) == [UNEVEN, UNEVEN]


def test_nodes_of_a_zone_share_what_is_in_it() -> None:
    first, second = node("node-1", "a"), node("node-2", "a")
    first.residents.add(pod_info(pod("a1")))
    given = pod(topologySpreadConstraints=[constraint()])

    assert refusals(given, first, second, node("node-3", "b")) == [UNEVEN, UNEVEN, ""]


def test_pods_elsewhere_and_pods_that_leave_do_not_count() -> None:
    given = pod(topologySpreadConstraints=[constraint()])

    assert refusals(given, *zones(a=[pod("a1", namespace="other")], b=[])) == ["", ""]
    assert refusals(given, *zones(a=[pod("a1")], b=[]), leaving="a1") == ["", ""]


@pytest.mark.parametrize(("policy", "refused"), [(None, ["", ""]), ("Honor", ["", ""]), ("Ignore", [UNEVEN, ""])])
def test_nodes_that_the_pod_does_not_want_count_only_if_it_says_so(policy: str | None, refused: list[str]) -> None:
    given = pod(topologySpreadConstraints=[constraint(nodeAffinityPolicy=policy)], nodeSelector={"zone": "a"})

    assert refusals(given, *zones(a=[pod("a1")], b=[])) == refused


def test_tainted_nodes_count_unless_the_pod_says_otherwise() -> None:
    tainted = node("node-2", "b", taints=[{"key": "only", "effect": "NoSchedule"}])
    busy = node("node-1", "a")
    busy.residents.add(pod_info(pod("a1")))

    assert refusals(pod(topologySpreadConstraints=[constraint()]), busy, tainted) == [UNEVEN, ""]
    honouring = constraint(nodeTaintsPolicy="Honor")
    assert refusals(pod(topologySpreadConstraints=[honouring]), busy, tainted)[0] == ""


def test_every_constraint_has_to_hold() -> None:
    given = pod(topologySpreadConstraints=[constraint(maxSkew=3), constraint(topologyKey="kubernetes.io/hostname")])

    assert refusals(given, *zones(a=TWO, b=[])) == [UNEVEN, ""]


def test_whoever_is_taken_away_in_thought_does_not_count() -> None:
    given = pod(topologySpreadConstraints=[constraint()])
    first, second = zones(a=TWO, b=[pod("b1")])
    spreading = spreading_of(given, pod_info(given), (first, second), lambda uid: False)
    assert spreading is not None
    assert spreading.reasons(first) == (UNEVEN,)

    first.residents.remove("a1")

    assert spreading.reasons(first) == ()


def test_preferences_are_not_looked_at() -> None:
    given = pod(topologySpreadConstraints=[constraint(whenUnsatisfiable="ScheduleAnyway")])

    assert spreading_of(given, pod_info(given), zones(a=TWO, b=[]), lambda uid: False) is None
    assert spreading_of(pod(), pod_info(pod()), (), lambda uid: False) is None


def test_the_spread_is_asked_before_the_neighbours() -> None:
    given = pod()

    assert reasons_against(given, pod_info(given), node("node-1"), (), spread=lambda node: (UNEVEN,)) == (UNEVEN,)
