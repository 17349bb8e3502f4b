"""The plugins that add one thing to an object: tolerations, taints, default classes, finalizers, topology labels.

Covers: kubewright.apiserver.admission
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.builders.admission import Admission
from tests.builders.pods import pod_tree

from kubewright.api.kinds import GroupVersionKind

Tree = dict[str, Any]

POD = GroupVersionKind("", "v1", "Pod")
CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")
INGRESS = GroupVersionKind("networking.k8s.io", "v1", "Ingress")
NODE = GroupVersionKind("", "v1", "Node")


pod = partial(pod_tree, "a", app="", container={"name": "a", "image": "b"})


def named(name: str, **fields: Any) -> Tree:
    return {"metadata": {"name": name}, **fields}


def test_pods_stay_five_minutes_on_a_lost_node() -> None:
    obj = pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}])

    tolerations = Admission().mutate(POD, obj)["spec"]["tolerations"]

    assert [(found["key"], found.get("tolerationSeconds")) for found in tolerations] == [
        ("node.kubernetes.io/not-ready", None),
        ("node.kubernetes.io/unreachable", 300),
    ]


def test_a_claim_gets_the_newest_default_class() -> None:
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    admission = Admission()
    for metadata in (
        {"name": "old", "annotations": mark, "creationTimestamp": "2024-01-01T00:00:00Z"},
        {"name": "new", "annotations": mark, "creationTimestamp": "2024-02-01T00:00:00Z"},
        {"name": "other", "creationTimestamp": "2024-03-01T00:00:00Z"},
    ):
        admission.put("storage.k8s.io/v1", "StorageClass", {"metadata": metadata})

    found = admission.mutate(CLAIM, named("c", spec={}))
    none = admission.mutate(CLAIM, named("c", spec={"storageClassName": ""}))
    updated = admission.mutate(CLAIM, named("c", spec={}), old=named("c", spec={}))

    assert found["spec"]["storageClassName"] == "new"
    assert found["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert none["spec"]["storageClassName"] == ""
    assert updated["spec"] == {}


def test_an_ingress_gets_the_default_class() -> None:
    mark = {"ingressclass.kubernetes.io/is-default-class": "true"}
    admission = Admission()
    admission.put("networking.k8s.io/v1", "IngressClass", {"metadata": {"name": "nginx", "annotations": mark}})

    assert admission.mutate(INGRESS, named("i", spec={}))["spec"]["ingressClassName"] == "nginx"


def test_a_new_node_is_not_ready() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}

    assert Admission().mutate(NODE, named("n"))["spec"]["taints"] == [taint]
    assert Admission().mutate(NODE, named("n", spec={"taints": [taint]}))["spec"]["taints"] == [taint]


def test_a_pod_on_a_node_has_the_zone_of_the_node() -> None:
    admission = Admission()
    admission.put("v1", "Node", {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z", "a": "b"}}})
    target = {"kind": "Node", "name": "n"}

    created = admission.mutate(POD, pod(nodeName="n"))
    binding = admission.mutate(POD, named("a", target=target), subresource="binding")
    lost = admission.mutate(POD, pod(nodeName="gone"))

    assert created["metadata"]["labels"] == binding["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z"}
    assert "labels" not in lost["metadata"]
