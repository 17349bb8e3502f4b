"""The RuntimeClass plugin: overhead and scheduling of the class."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.builders.admission import Admission
from tests.builders.pods import pod_tree

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.wire.status_errors import StatusError

Tree = dict[str, Any]

POD = GroupVersionKind("", "v1", "Pod")


pod = partial(pod_tree, "a", "shop", container={"name": "a", "image": "b"})


@pytest.fixture
def admission() -> Admission:
    admission = Admission()
    scheduling = {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "x", "operator": "Exists"}]}
    overhead = {"podFixed": {"cpu": "10m"}}
    runtime_class = {"metadata": {"name": "vm"}, "handler": "vm", "overhead": overhead, "scheduling": scheduling}
    admission.put("node.k8s.io/v1", "RuntimeClass", runtime_class)
    return admission


def test_a_runtime_brings_overhead_and_nodes(admission: Admission) -> None:
    obj = admission.mutate(POD, pod(runtimeClassName="vm"))
    admission.validate(POD, obj)

    spec = obj["spec"]
    assert spec["overhead"] == {"cpu": "10m"}
    assert spec["nodeSelector"] == {"a": "b"}
    assert spec["tolerations"][-1] == {"key": "x", "operator": "Exists"}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"runtimeClassName": "nope"}, 'pod rejected: RuntimeClass "nope" not found'),
        (
            {"runtimeClassName": "vm", "nodeSelector": {"a": "c"}},
            "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c",
        ),
        (
            {"runtimeClassName": "vm", "overhead": {"cpu": "20m"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"overhead": {"cpu": "20m"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
    ],
)
def test_a_pod_that_does_not_fit_its_class_is_refused(admission: Admission, spec: Tree, why: str) -> None:
    obj = pod(**spec)

    with pytest.raises(StatusError) as caught:
        admission.validate(POD, admission.mutate(POD, obj))

    assert (caught.value.code, str(caught.value)) == (403, f'pods "a" is forbidden: {why}')
