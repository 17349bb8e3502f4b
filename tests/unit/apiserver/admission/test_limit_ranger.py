"""The LimitRanger plugin: defaults for containers, and refusals of what is beyond the limits."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders.admission import Admission

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.wire.status_errors import StatusError

Tree = dict[str, Any]

POD = GroupVersionKind("", "v1", "Pod")
CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")


def pod(*containers: Tree) -> Tree:
    return {"metadata": {"name": "a"}, "spec": {"containers": list(containers) or [{"name": "a", "image": "b"}]}}


def limited(**limit: Any) -> Admission:
    admission = Admission()
    admission.put("v1", "LimitRange", {"metadata": {"name": "limits"}, "spec": {"limits": [limit]}})
    return admission


def refusal(admission: Admission, obj: Tree, gvk: GroupVersionKind = POD) -> str:
    admission.mutate(gvk, obj)
    with pytest.raises(StatusError) as caught:
        admission.validate(gvk, obj)
    assert caught.value.code == 403
    return str(caught.value.status["message"])


def test_limits_of_the_namespace_are_given_to_containers_without() -> None:
    admission = limited(type="Container", default={"cpu": "500m"}, defaultRequest={"cpu": "100m"})

    found = admission.mutate(POD, pod())

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
    obj = pod({"name": "a", "image": "b", "resources": resources})

    assert refusal(limited(type="Container", **limit), obj) == f'pods "a" is forbidden: {why}'


def test_a_pod_is_limited_as_a_whole() -> None:
    containers = [{"name": name, "image": "b", "resources": {"limits": {"cpu": "2"}}} for name in "ab"]

    told = refusal(limited(type="Pod", max={"cpu": "3"}), pod(*containers))

    assert told == 'pods "a" is forbidden: maximum cpu usage per Pod is 3, but limit is 4'


def test_a_claim_beyond_the_limits_is_refused() -> None:
    claim = {"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": "3Gi"}}}}

    told = refusal(limited(type="PersistentVolumeClaim", max={"storage": "2Gi"}), claim, CLAIM)

    why = "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"
    assert told == f'persistentvolumeclaims "c" is forbidden: {why}'
