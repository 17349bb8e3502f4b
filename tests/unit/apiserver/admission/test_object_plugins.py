"""What the server adds to objects by looking at others, and what it refuses on the way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.admission.object_plugins import admit
from kubewright.apiserver.wire.status_errors import StatusError

Tree = dict[str, Any]

POD = GroupVersionKind("", "v1", "Pod")
CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")
INGRESS = GroupVersionKind("networking.k8s.io", "v1", "Ingress")
NODE = GroupVersionKind("", "v1", "Node")
PRIORITY = GroupVersionKind("scheduling.k8s.io", "v1", "PriorityClass")


class Cluster:
    """Objects to be looked up."""

    def __init__(self, **objects: list[Tree]) -> None:
        self._objects = {"ServiceAccount": [{"metadata": {"name": "default"}}], **objects}

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> Tree | None:
        return next((found for found in self.list(gvk) if found["metadata"]["name"] == name), None)

    def list(self, gvk: GroupVersionKind, namespace: str = "") -> Iterator[Tree]:
        return iter(self._objects.get(gvk.kind, []))


def pod(**spec: Any) -> Tree:
    metadata = {"name": "a", "namespace": "shop"}
    return {"metadata": metadata, "spec": {"containers": [{"name": "a", "image": "b"}], **spec}}


def admitted(obj: Tree, gvk: GroupVersionKind = POD, **objects: list[Tree]) -> Tree:
    admit(gvk, obj, Cluster(**objects), chance=random.Random(1))
    return obj


def refusal(obj: Tree, gvk: GroupVersionKind = POD, **objects: list[Tree]) -> str:
    with pytest.raises(StatusError) as caught:
        admit(gvk, obj, Cluster(**objects))
    assert caught.value.code == 403
    return str(caught.value.status["message"])


def named(name: str, **fields: Any) -> Tree:
    return {"metadata": {"name": name}, **fields}


def test_a_pod_gets_the_token_of_its_account() -> None:
    spec = admitted(pod())["spec"]

    volume = spec["volumes"][0]
    mount = spec["containers"][0]["volumeMounts"][0]
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    assert volume["name"].startswith("kube-api-access-")
    assert mount["name"] == volume["name"]
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]


def test_a_container_that_mounts_something_there_gets_no_token() -> None:
    mounts = [{"name": "own", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]

    spec = admitted(pod(containers=[{"name": "a", "image": "b", "volumeMounts": mounts}]))["spec"]

    assert "volumes" not in spec
    assert len(spec["containers"][0]["volumeMounts"]) == 1


@pytest.mark.parametrize(
    ("own", "account", "mounted"), [(False, None, False), (None, False, False), (True, False, True)]
)
def test_the_pod_decides_over_its_account(own: bool | None, account: bool | None, mounted: bool) -> None:
    accounts = [named("default", automountServiceAccountToken=account)]

    spec = admitted(pod(automountServiceAccountToken=own), ServiceAccount=accounts)["spec"]

    assert mounted == ("volumes" in spec)


def test_pull_secrets_come_with_the_account() -> None:
    accounts = [named("default", imagePullSecrets=[{"name": "s"}])]

    assert admitted(pod(), ServiceAccount=accounts)["spec"]["imagePullSecrets"] == [{"name": "s"}]
    own = pod(imagePullSecrets=[{"name": "o"}])
    assert admitted(own, ServiceAccount=accounts)["spec"]["imagePullSecrets"] == [{"name": "o"}]


def test_a_pod_without_its_account_is_refused() -> None:
    why = 'error looking up service account shop/nope: serviceaccount "nope" not found'

    assert refusal(pod(serviceAccountName="nope")) == f'pods "a" is forbidden: {why}'


def test_mirror_pods_are_left_alone() -> None:
    mirror = pod()
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}

    assert "serviceAccountName" not in admitted(mirror)["spec"]


def test_priority_is_that_of_the_class() -> None:
    classes = [named("high", value=7, preemptionPolicy="Never"), named("low", value=3, globalDefault=True)]

    chosen = admitted(pod(priorityClassName="high"), PriorityClass=classes)["spec"]
    default = admitted(pod(), PriorityClass=classes)["spec"]
    none = admitted(pod())["spec"]

    assert (chosen["priority"], chosen["preemptionPolicy"]) == (7, "Never")
    assert (default["priority"], default["priorityClassName"]) == (3, "low")
    assert (none["priority"], none["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in none


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "nope"}, "no PriorityClass with name nope was found"),
        (
            {"priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority admission controller "
            "computed 0 from the given PriorityClass name",
        ),
        (
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission "
            "controller computed PreemptLowerPriority from the given PriorityClass name",
        ),
        ({"runtimeClassName": "nope"}, 'pod rejected: RuntimeClass "nope" not found'),
    ],
)
def test_what_others_decide_may_not_be_said_otherwise(spec: Tree, why: str) -> None:
    assert refusal(pod(**spec)) == f'pods "a" is forbidden: {why}'


def test_pods_stay_five_minutes_on_a_lost_node() -> None:
    tolerations = admitted(pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]))["spec"][
        "tolerations"
    ]

    assert [(found["key"], found.get("tolerationSeconds")) for found in tolerations] == [
        ("node.kubernetes.io/not-ready", None),
        ("node.kubernetes.io/unreachable", 300),
    ]


def test_a_runtime_brings_overhead_and_nodes() -> None:
    scheduling = {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "x", "operator": "Exists"}]}
    classes = [named("vm", overhead={"podFixed": {"cpu": "10m"}}, scheduling=scheduling)]

    spec = admitted(pod(runtimeClassName="vm"), RuntimeClass=classes)["spec"]
    conflict = refusal(pod(runtimeClassName="vm", nodeSelector={"a": "c"}), RuntimeClass=classes)

    assert spec["overhead"] == {"cpu": "10m"}
    assert spec["nodeSelector"] == {"a": "b"}
    assert spec["tolerations"][-1] == {"key": "x", "operator": "Exists"}
    assert "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c" in conflict


def limit_range(**limit: Any) -> Tree:
    return named("limits", spec={"limits": [limit]})


def test_limits_of_the_namespace_are_given_to_containers_without() -> None:
    ranges = [limit_range(type="Container", default={"cpu": "500m"}, defaultRequest={"cpu": "100m"})]

    found = admitted(pod(), LimitRange=ranges)

    assert found["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}}
    note = "LimitRanger plugin set: cpu request for container a; cpu limit for container a"
    assert found["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == note


@pytest.mark.parametrize(
    ("limit", "resources", "why"),
    [
        ({"max": {"cpu": "1"}}, {}, "maximum cpu usage per Container is 1.  No limit is specified"),
        ({"max": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, "maximum cpu usage per Container is 1, but limit is 2"),
        ({"min": {"cpu": "1"}}, {}, "minimum cpu usage per Container is 1.  No request is specified"),
        (
            {"min": {"cpu": "1"}},
            {"requests": {"cpu": "500m"}},
            "minimum cpu usage per Container is 1, but request is 500m",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
    ],
)
def test_a_pod_beyond_the_limits_is_refused(limit: Tree, resources: Tree, why: str) -> None:
    container = {"name": "a", "image": "b", "resources": resources}

    told = refusal(pod(containers=[container]), LimitRange=[limit_range(type="Container", **limit)])

    assert told == f'pods "a" is forbidden: {why}'


def test_a_pod_is_limited_as_a_whole() -> None:
    containers = [{"name": name, "image": "b", "resources": {"limits": {"cpu": "2"}}} for name in "ab"]

    told = refusal(pod(containers=containers), LimitRange=[limit_range(type="Pod", max={"cpu": "3"})])

    assert told == 'pods "a" is forbidden: maximum cpu usage per Pod is 3, but limit is 4'


def test_a_claim_beyond_the_limits_is_refused() -> None:
    claim = named("c", spec={"resources": {"requests": {"storage": "3Gi"}}})
    ranges = [limit_range(type="PersistentVolumeClaim", max={"storage": "2Gi"})]

    told = refusal(claim, CLAIM, LimitRange=ranges)

    why = "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"
    assert told == f'persistentvolumeclaims "c" is forbidden: {why}'


def test_a_claim_gets_the_newest_default_class() -> None:
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes: list[Tree] = [
        {"metadata": {"name": "old", "annotations": mark, "creationTimestamp": "2024-01-01T00:00:00Z"}},
        {"metadata": {"name": "new", "annotations": mark, "creationTimestamp": "2024-02-01T00:00:00Z"}},
        {"metadata": {"name": "other", "creationTimestamp": "2024-03-01T00:00:00Z"}},
    ]

    found = admitted(named("c", spec={}), CLAIM, StorageClass=classes)
    none = admitted(named("c", spec={"storageClassName": ""}), CLAIM, StorageClass=classes)

    assert found["spec"]["storageClassName"] == "new"
    assert found["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert none["spec"]["storageClassName"] == ""


def test_an_ingress_gets_the_default_class() -> None:
    mark = {"ingressclass.kubernetes.io/is-default-class": "true"}
    classes = [{"metadata": {"name": "nginx", "annotations": mark}}]

    assert admitted(named("i", spec={}), INGRESS, IngressClass=classes)["spec"]["ingressClassName"] == "nginx"


def test_a_new_node_is_not_ready() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}

    assert admitted(named("n"), NODE)["spec"]["taints"] == [taint]
    assert admitted(named("n", spec={"taints": [taint]}), NODE)["spec"]["taints"] == [taint]


def test_there_is_one_default_priority() -> None:
    told = refusal(named("b", globalDefault=True), PRIORITY, PriorityClass=[named("a", globalDefault=True)])

    why = "PriorityClass a is already marked as default. Only one default can exist"
    assert told == f'priorityclasses.scheduling.k8s.io "b" is forbidden: {why}'
