"""Daemon placement, rolling updates and back-off.

Covers: kubewright.cluster.controller_manager.workloads
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kubewright import ObjectMeta
from kubewright.cluster.controller_manager.workloads.daemon_placement import (
    node_should_run_daemon_pod,
    target_node_name,
    with_node_name_affinity,
)
from kubewright.cluster.controller_manager.workloads.daemon_update import rolling_update
from kubewright.cluster.controller_manager.workloads.daemonset import FailedPodsBackoff
from kubewright.k8s.apps.v1 import DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet
from kubewright.k8s.core.v1 import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    Taint,
    Toleration,
)
from kubewright.k8s.meta.v1 import LabelSelector

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def node(*taints: Taint, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name="n1", labels=labels), spec=NodeSpec(taints=list(taints)))


def affinity(*terms: NodeSelectorTerm) -> Affinity:
    required = NodeSelector(node_selector_terms=list(terms))
    return Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))


def term(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=[NodeSelectorRequirement(key=key, operator=operator, values=list(values))]
    )


def tolerating(**toleration: Any) -> PodSpec:
    return PodSpec(tolerations=[Toleration(**toleration)])


@pytest.mark.parametrize(
    ("spec", "given", "wanted"),
    [
        (PodSpec(), node(), (True, True)),
        (PodSpec(node_name="n2"), node(), (False, False)),
        (PodSpec(node_selector={"disk": "ssd"}), node(disk="ssd"), (True, True)),
        (PodSpec(node_selector={"disk": "ssd"}), node(disk="hdd"), (False, False)),
        (PodSpec(affinity=affinity(term("disk", "In", "ssd"), term("gpu", "Exists"))), node(gpu="1"), (True, True)),
        (PodSpec(affinity=affinity(term("cores", "Gt", "4"))), node(cores="4"), (False, False)),
        (PodSpec(affinity=affinity(NodeSelectorTerm())), node(), (False, False)),
        (PodSpec(affinity=affinity()), node(), (False, False)),
        (PodSpec(), node(Taint(key="a", effect="NoSchedule")), (False, True)),
        (PodSpec(), node(Taint(key="a", effect="NoExecute")), (False, False)),
        (PodSpec(), node(Taint(key="a", effect="PreferNoSchedule")), (True, True)),
        (PodSpec(), node(Taint(key="node.kubernetes.io/not-ready", effect="NoExecute")), (True, True)),
        (tolerating(key="a", value="x"), node(Taint(key="a", value="x", effect="NoExecute")), (True, True)),
        (tolerating(key="a", value="y"), node(Taint(key="a", value="x", effect="NoSchedule")), (False, True)),
        (tolerating(operator="Exists"), node(Taint(key="a", value="x", effect="NoSchedule")), (True, True)),
    ],
)
def test_node_should_run_daemon_pod(spec: PodSpec, given: Node, wanted: tuple[bool, bool]) -> None:
    assert node_should_run_daemon_pod(spec, given) == wanted


def test_a_daemon_pod_has_an_affinity_for_its_node_and_the_template_is_unchanged() -> None:
    spec = PodSpec(affinity=affinity(term("disk", "In", "ssd")), host_network=True)

    made = with_node_name_affinity(spec, "n7")

    assert target_node_name(Pod(spec=made)) == "n7"
    assert len(made.tolerations or ()) == 7
    assert target_node_name(Pod(spec=spec)) == ""
    assert target_node_name(Pod(spec=PodSpec(node_name="n8"))) == "n8"


def daemon(revision: str, *, up: bool = True) -> Pod:
    conditions = [PodCondition(type="Ready", status="True" if up else "False")]
    return Pod(
        metadata=ObjectMeta(name=revision, labels={"controller-revision-hash": revision}),
        status=PodStatus(phase="Running", conditions=conditions),
    )


def daemon_set(**limits: Any) -> DaemonSet:
    strategy = DaemonSetUpdateStrategy(type="RollingUpdate", rolling_update=RollingUpdateDaemonSet(**limits))
    return DaemonSet(spec=DaemonSetSpec(selector=LabelSelector(), template=PodTemplateSpec(), update_strategy=strategy))


def test_as_many_pods_are_replaced_as_max_unavailable_allows() -> None:
    daemons = {f"n{place}": [daemon("old")] for place in range(4)}

    assert len(rolling_update(daemon_set(max_unavailable="50%"), daemons, daemons, "new", NOW)[0]) == 2
    daemons["n0"] = [daemon("new", up=False)]
    assert len(rolling_update(daemon_set(max_unavailable=2), daemons, daemons, "new", NOW)[0]) == 1
    daemons["n1"] = [daemon("old", up=False)]
    assert rolling_update(daemon_set(max_unavailable=2), daemons, daemons, "new", NOW)[0] == daemons["n1"]


def test_with_surge_the_new_pod_is_created_first() -> None:
    daemons = {f"n{place}": [daemon("old")] for place in range(3)}
    given = daemon_set(max_surge=1, max_unavailable=0)

    assert rolling_update(given, daemons, daemons, "new", NOW) == ([], ["n0"])
    daemons["n0"].append(daemon("new", up=False))
    assert rolling_update(given, daemons, daemons, "new", NOW) == ([], [])
    daemons["n0"][1] = daemon("new")
    assert rolling_update(given, daemons, daemons, "new", NOW) == ([daemons["n0"][0]], ["n1"])


def test_a_failing_daemon_pod_is_replaced_with_back_off() -> None:
    failures, given = FailedPodsBackoff(), daemon_set(max_unavailable=1)

    assert failures.delay(given, "n1", NOW) == 0
    assert failures.delay(given, "n1", NOW) == 1
    assert failures.delay(given, "n2", NOW) == 0
