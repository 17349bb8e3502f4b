"""What the schema alone refuses; there is no webhook."""

import json
from typing import Any

import pytest
from kubewright.errors import Invalid
from kubewright.k8s.core.v1 import Pod

from podset.api.v1alpha1.podset import PodSet, PodSetSpec
from tests.home import Home, Kubectl, tree


async def post(home: Home, body: dict[str, Any]) -> None:
    path = f"/apis/apps.jicki.cn/v1alpha1/namespaces/{home.namespace}/podsets"
    await home.client.request("POST", path, body=json.dumps(body).encode())


@pytest.mark.parametrize("size", [-1, "3", 1.5, 2**31, None])
async def test_a_size_that_is_no_number_of_pods_is_refused(home: Home, size: Any) -> None:
    with pytest.raises(Invalid) as refused:
        await post(home, tree("web", size=size))

    assert any(cause.field == "spec.size" for cause in refused.value.causes)


async def test_a_set_without_a_size_is_refused(home: Home) -> None:
    with pytest.raises(Invalid, match=r"spec\.size: Required value"):
        await post(home, tree("web"))
    with pytest.raises(Invalid, match="spec: Required value"):
        await post(home, {key: value for key, value in tree("web").items() if key != "spec"})


async def test_a_name_that_is_no_value_of_a_label_is_refused(home: Home) -> None:
    with pytest.raises(Invalid, match=r"metadata\.name"):
        await post(home, tree("x" * 64, size=0))

    seen = await home.podset(1, name="x" * 63)

    (pod,) = await home.client.list(Pod, namespace=home.namespace)
    assert seen.status.nodes == [pod.metadata.name]


async def test_a_status_without_nodes_is_refused(home: Home) -> None:
    made = await home.client.create(PodSet.named("web", home.namespace, spec=PodSetSpec(size=0)))
    await home.settled(0)
    with pytest.raises(Invalid, match=r"status\.nodes"):
        await home.client.patch_by_name(PodSet, made.key, {"status": {"nodes": None}}, subresource="status")


async def test_kubectl_shows_the_numbers(home: Home, kubectl: Kubectl) -> None:
    await home.podset(2)

    shown = (await kubectl("get", "podsets", "-n", home.namespace)).splitlines()

    assert shown[0].split() == ["NAME", "DESIRED", "CURRENT", "READY", "AGE"]
    assert shown[1].split()[:4] == ["web", "2", "2", "2"]
