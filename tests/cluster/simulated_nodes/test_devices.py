"""Pods with ResourceClaims on simulated nodes: they wait for their claims, and get devices that drivers publish.

On both planes: the scheduler is the same, and a real API server is picky about what it writes.

Covers: kubewright.cluster.scheduler.devices
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.builders.pods import pod
from tests.cluster.simulated_nodes.conftest import is_ready
from tests.planes import fresh_namespace

from kubewright import Client, ObjectKey
from kubewright.api.codec import from_tree, to_tree
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import Namespace, Node, Pod, ServiceAccount
from kubewright.k8s.resource.v1 import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from kubewright.testing import gone, until

FINALIZER = "resource.kubernetes.io/delete-protection"
PREEMPTION = "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."


@pytest.fixture(scope="module")
async def embedded_nodes() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(nodes=3) as cluster:
        await cluster.wait_for_controllers()
        yield cluster


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def client(request: pytest.FixtureRequest) -> Client:
    cluster = request.getfixturevalue(f"{request.param}_nodes")
    assert isinstance(cluster, EmbeddedCluster | RealCluster)
    return cluster.client


class Lab:
    """Devices of one driver, and a namespace for those who want them."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.driver = f"{namespace}.example.com"
        self._made: list[tuple[type[Any], str]] = []

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.namespace, name)

    async def nodes(self) -> list[str]:
        return sorted([node.metadata.name for node in await self.client.list(Node)])

    async def device_class(self, name: str = "", *selectors: str, **spec: Any) -> str:
        """Named like the driver, and of its devices, unless told otherwise."""
        full = f"{name}.{self.driver}" if name else self.driver
        cel = [{"cel": {"expression": text}} for text in (f'device.driver == "{self.driver}"', *selectors)]
        tree = {"metadata": {"name": full}, "spec": {"selectors": cel, **spec}}
        await self.client.create(from_tree(DeviceClass, tree))
        self._made.append((DeviceClass, full))
        return full

    async def publish(self, *devices: dict[str, Any], **spec: Any) -> str:
        """A slice that is a whole pool, for the first node unless told otherwise."""
        name = f"{self.namespace}-{len(self._made)}"
        if not {"nodeName", "nodeSelector", "allNodes"} & set(spec):
            spec["nodeName"] = (await self.nodes())[0]
        content = {
            "driver": self.driver,
            "pool": {"name": f"pool-{len(self._made)}", "generation": 1, "resourceSliceCount": 1},
            "devices": list(devices),
            **spec,
        }
        await self.client.create(from_tree(ResourceSlice, {"metadata": {"name": name}, "spec": content}))
        self._made.append((ResourceSlice, name))
        return name

    async def claim(self, name: str, *requests: dict[str, Any], **devices: Any) -> ResourceClaim:
        wanted = list(requests) or [self.request()]
        spec = {"devices": {"requests": wanted, **devices}}
        metadata = {"name": name, "namespace": self.namespace}
        return await self.client.create(from_tree(ResourceClaim, {"metadata": metadata, "spec": spec}))

    def request(self, name: str = "gpu", *selectors: str, device_class: str = "", **exactly: Any) -> dict[str, Any]:
        return {"name": name, "exactly": self.device_request(*selectors, device_class=device_class, **exactly)}

    def device_request(self, *selectors: str, device_class: str = "", **rest: Any) -> dict[str, Any]:
        cel = [{"cel": {"expression": text}} for text in selectors]
        return {"deviceClassName": device_class or self.driver, **({"selectors": cel} if cel else {}), **rest}

    async def pod(self, name: str, *claims: str, template: str = "", **spec: Any) -> Pod:
        entries = [{"name": each, "resourceClaimName": each} for each in claims]
        if template:
            entries.append({"name": "own", "resourceClaimTemplateName": template})
        container = {"resources": {"claims": [{"name": each["name"]} for each in entries]}}
        content = {"terminationGracePeriodSeconds": 0, "resourceClaims": entries, **spec}
        return await self.client.create(pod(name, self.namespace, container=container, **content))

    async def ready(self, name: str) -> Pod:
        return await until(self.client, Pod, self.key(name), is_ready)

    async def refused(self, name: str, words: str, reason: str = "Unschedulable") -> str:
        """The message of a pod that has no node, once these words are in it.

        Others may come before: the scheduler hears of each kind by a watch of its own.
        """

        def told(each: Pod) -> bool:
            return any(words in (condition.message or "") for condition in each.status.conditions or ())

        found = await until(self.client, Pod, self.key(name), told)
        (condition,) = found.status.conditions or []
        assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", reason)
        return condition.message or ""

    async def allocated(self, name: str) -> dict[str, Any]:
        """The allocation of a claim, as JSON."""
        found = await until(self.client, ResourceClaim, self.key(name), lambda each: each.status.allocation)
        assert found.status.allocation is not None
        tree: dict[str, Any] = to_tree(found.status.allocation)
        return tree

    async def devices(self, name: str) -> list[str]:
        return [result["device"] for result in (await self.allocated(name))["devices"]["results"]]

    async def clear(self) -> None:
        for kind, name in self._made:
            if await self.client.find(kind, name) is not None:
                await self.client.delete(kind, name)


@pytest.fixture
async def lab(client: Client) -> AsyncIterator[Lab]:
    name = await fresh_namespace(client)
    await until(client, ServiceAccount, ObjectKey(name, "default"))
    lab = Lab(client, name)
    yield lab
    # Most pods are on the first node, and others want to see theirs spread.
    for each in await client.list(Pod, namespace=name):
        await client.delete(each)
        await gone(client, Pod, each.key)
    await client.delete(Namespace, name)
    await lab.clear()


def gpu(name: str, **attributes: Any) -> dict[str, Any]:
    kinds = {bool: "bool", int: "int", str: "string"}
    found = {key: {kinds[type(value)]: value} for key, value in attributes.items()}
    return {"name": name, "attributes": found} if found else {"name": name}


async def test_a_pod_gets_a_device_on_the_node_that_has_one(lab: Lab) -> None:
    await lab.device_class()
    node = (await lab.nodes())[2]
    await lab.publish(gpu("gpu-0"), nodeName=node)
    await lab.claim("one")
    made = await lab.pod("user", "one")

    assert (await lab.ready("user")).spec.node_name == node

    claim = await lab.client.get(ResourceClaim, lab.key("one"))
    assert claim.metadata.finalizers == [FINALIZER]
    (user,) = claim.status.reserved_for or []
    assert (user.resource, user.name, user.uid) == ("pods", "user", made.metadata.uid)
    fields = {"key": "metadata.name", "operator": "In", "values": [node]}
    assert await lab.allocated("one") == {
        "devices": {"results": [{"request": "gpu", "driver": lab.driver, "pool": "pool-1", "device": "gpu-0"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [fields]}]},
    }


async def test_a_claim_from_a_template_lives_as_long_as_its_pod(lab: Lab) -> None:
    await lab.device_class()
    await lab.publish(gpu("gpu-0"))
    spec = {"spec": {"devices": {"requests": [lab.request()]}}}
    metadata = {"name": "gpus", "namespace": lab.namespace}
    await lab.client.create(from_tree(ResourceClaimTemplate, {"metadata": metadata, "spec": spec}))

    await lab.pod("first", template="gpus")
    running = await lab.ready("first")
    (status,) = running.status.resource_claim_statuses or []
    assert await lab.devices(status.resource_claim_name or "") == ["gpu-0"]

    await lab.pod("second", template="gpus")
    reasons = "0/3 nodes are available: 3 cannot allocate all claims."
    assert await lab.refused("second", reasons) == f"{reasons} still not schedulable, {PREEMPTION}"

    await lab.client.delete(Pod, lab.key("first"))
    await gone(lab.client, ResourceClaim, lab.key(status.resource_claim_name or ""))
    assert is_ready(await lab.ready("second"))


async def test_a_pod_waits_for_its_claim_its_class_and_a_device(lab: Lab) -> None:
    await lab.pod("early", "one")
    nothing = f'0/3 nodes are available: could not find ResourceClaim "{lab.namespace}/one".'
    first = await lab.refused("early", nothing)
    assert first == f"{nothing} no new claims to deallocate, {PREEMPTION}"

    await lab.claim("one")
    missing = f"request gpu: device class {lab.driver} does not exist"
    second = await lab.refused("early", missing)
    assert second == f"0/3 nodes are available: {missing}. no new claims to deallocate, {PREEMPTION}"

    await lab.device_class()
    third = await lab.refused("early", "cannot allocate all claims")
    assert third == f"0/3 nodes are available: 3 cannot allocate all claims. still not schedulable, {PREEMPTION}"

    await lab.publish(gpu("gpu-0"))
    assert is_ready(await lab.ready("early"))


async def test_pods_share_a_claim_where_it_is(lab: Lab) -> None:
    await lab.device_class()
    node = (await lab.nodes())[1]
    await lab.publish(gpu("gpu-0"), nodeName=node)
    await lab.claim("shared")
    for name in ("a", "b", "c"):
        await lab.pod(name, "shared")

    found = [await lab.ready(name) for name in ("a", "b", "c")]

    assert {each.spec.node_name for each in found} == {node}
    claim = await lab.client.get(ResourceClaim, lab.key("shared"))
    assert sorted(each.name for each in claim.status.reserved_for or ()) == ["a", "b", "c"]


async def test_a_burst_of_pods_gets_each_device_once(lab: Lab) -> None:
    await lab.device_class()
    for node in await lab.nodes():
        await lab.publish(*(gpu(f"gpu-{number}") for number in range(4)), nodeName=node)
    spec = {"spec": {"devices": {"requests": [lab.request()]}}}
    metadata = {"name": "gpus", "namespace": lab.namespace}
    await lab.client.create(from_tree(ResourceClaimTemplate, {"metadata": metadata, "spec": spec}))
    names = [f"p{number}" for number in range(12)]
    for name in names:
        await lab.pod(name, template="gpus")

    for name in names:
        await lab.ready(name)

    claims = await lab.client.list(ResourceClaim, namespace=lab.namespace)
    found = [(await lab.allocated(each.metadata.name))["devices"]["results"][0] for each in claims]
    assert len({(each["pool"], each["device"]) for each in found}) == 12


async def test_devices_are_selected_by_attributes_and_capacity(lab: Lab) -> None:
    await lab.device_class()
    await lab.publish(
        {
            "name": "old",
            "attributes": {"model": {"string": "a100"}, "version": {"version": "1.2.0"}},
            "capacity": {"memory": {"value": "40Gi"}},
        },
        {
            "name": "new",
            "attributes": {"model": {"string": "h100"}, "version": {"version": "2.0.1"}, "cores": {"int": 8}},
            "capacity": {"memory": {"value": "80Gi"}},
        },
    )
    of = f'device.attributes["{lab.driver}"]'
    large = f'device.capacity["{lab.driver}"].memory.compareTo(quantity("80Gi")) >= 0'
    await lab.claim("large", lab.request("gpu", large, f'{of}.model == "h100" && {of}.cores > 4'))
    recent = f'{of}.version.isLessThan(semver("2.0.0")) && !("other.example.com" in device.attributes)'
    await lab.claim("recent", lab.request("gpu", recent, '!has(device.attributes["other.example.com"].x)'))
    await lab.pod("user", "large", "recent")

    await lab.ready("user")
    assert (await lab.devices("large"), await lab.devices("recent")) == (["new"], ["old"])


async def test_a_failing_selector_is_reported(lab: Lab) -> None:
    await lab.device_class()
    await lab.publish(gpu("gpu-0"))
    await lab.claim("wrong", lab.request("gpu", f'device.attributes["{lab.driver}"].colour == "red"'))
    await lab.pod("user", "wrong")

    problem = f"claim {lab.namespace}/wrong: selector #0: CEL runtime error: no such key: colour"
    message = await lab.refused("user", problem, "SchedulerError")
    assert message == f'running "DynamicResources" filter plugin: {problem}'


async def test_devices_satisfy_match_attribute(lab: Lab) -> None:
    await lab.device_class()
    await lab.publish(
        gpu("a0", numa=0), gpu("a1", numa=1), gpu("a2", numa=1), gpu("a3", numa=0), gpu("a4"), gpu("a5", numa=1)
    )
    same = {"matchAttribute": f"{lab.driver}/numa"}
    await lab.claim("three", lab.request(count=3), constraints=[same])
    await lab.pod("user", "three")

    await lab.ready("user")
    assert await lab.devices("three") == ["a1", "a2", "a5"]


async def test_a_claim_for_all_devices_gets_all_or_none(lab: Lab) -> None:
    await lab.device_class()
    await lab.publish(gpu("b0"), gpu("b1"), gpu("b2"))
    await lab.claim("single")
    await lab.pod("small", "single")
    await lab.ready("small")
    await lab.claim("everything", lab.request(allocationMode="All"))
    await lab.pod("greedy", "everything")
    assert await lab.refused("greedy", "3 cannot allocate all claims")

    await lab.client.delete(Pod, lab.key("small"))

    await lab.ready("greedy")
    assert await lab.devices("everything") == ["b0", "b1", "b2"]
    assert (await lab.client.get(ResourceClaim, lab.key("single"))).status.allocation is None


async def test_the_first_available_alternative_is_allocated(lab: Lab) -> None:
    await lab.device_class()
    nodes = await lab.nodes()
    await lab.publish(gpu("large-0", size="large"), nodeName=nodes[1])  # first: who knows of the others knows of it
    await lab.publish(gpu("small-0", size="small"), gpu("small-1", size="small"), nodeName=nodes[0])
    size = f'device.attributes["{lab.driver}"].size'
    wanted = {
        "name": "gpu",
        "firstAvailable": [
            {"name": "large", **lab.device_request(f'{size} == "large"')},
            {"name": "small", **lab.device_request(f'{size} == "small"', count=2)},
        ],
    }
    for number, node in enumerate((nodes[1], nodes[0])):
        await lab.claim(f"any-{number}", wanted)
        await lab.pod(f"user-{number}", f"any-{number}")
        assert (await lab.ready(f"user-{number}")).spec.node_name == node

    results = [(await lab.allocated(f"any-{number}"))["devices"]["results"] for number in (0, 1)]
    assert [[(each["request"], each["device"]) for each in found] for found in results] == [
        [("gpu/large", "large-0")],
        [("gpu/small", "small-0"), ("gpu/small", "small-1")],
    ]


async def test_admin_access_shares_allocated_devices(lab: Lab) -> None:
    await lab.client.patch_by_name(
        Namespace, lab.namespace, {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    )
    await lab.device_class()
    await lab.publish(gpu("c0"))
    await lab.claim("one")
    await lab.pod("user", "one")
    await lab.ready("user")

    await lab.claim("look", lab.request(adminAccess=True))
    await lab.pod("monitor", "look")

    await lab.ready("monitor")
    (result,) = (await lab.allocated("look"))["devices"]["results"]
    assert (result["device"], result["adminAccess"]) == ("c0", True)


async def test_devices_of_several_nodes_have_a_node_selector(lab: Lab) -> None:
    await lab.device_class()
    near = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": (await lab.nodes())[:2]}
    await lab.publish(gpu("d0"), nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [near]}]})
    await lab.publish(gpu("d1"), allNodes=True)
    await lab.claim("both", lab.request(count=2))
    await lab.claim("one", lab.request())
    await lab.pod("user", "both")

    assert (await lab.ready("user")).spec.node_name == (await lab.nodes())[2]
    assert (await lab.allocated("both"))["nodeSelector"] == {"nodeSelectorTerms": [{"matchExpressions": [near]}]}

    await lab.client.delete(Pod, lab.key("user"))
    await until(lab.client, ResourceClaim, lab.key("both"), lambda each: each.status.allocation is None)
    await lab.pod("anywhere", "one", nodeSelector={"kubernetes.io/hostname": (await lab.nodes())[0]})
    await lab.ready("anywhere")
    assert "nodeSelector" not in await lab.allocated("one")


async def test_configuration_of_class_and_claim_goes_with_the_devices(lab: Lab) -> None:
    def config(text: str) -> dict[str, Any]:
        return {"opaque": {"driver": lab.driver, "parameters": {"mode": text}}}

    await lab.device_class(config=[config("class")])
    await lab.publish(gpu("e0"), gpu("e1"))
    await lab.claim(
        "set",
        lab.request("one"),
        lab.request("two"),
        config=[config("all"), {"requests": ["two"], **config("second")}],
    )
    await lab.pod("user", "set")

    await lab.ready("user")
    assert (await lab.allocated("set"))["devices"]["config"] == [
        {"source": "FromClass", "requests": ["one", "two"], **config("class")},
        {"source": "FromClaim", **config("all")},
        {"source": "FromClaim", "requests": ["two"], **config("second")},
    ]


async def test_a_claim_with_spaces_in_its_parameters_is_allocated(lab: Lab) -> None:
    await lab.device_class()
    await lab.publish(gpu("h0"))
    config = {"opaque": {"driver": lab.driver, "parameters": {"a": [1, 2]}}}
    spec = {"devices": {"requests": [lab.request()], "config": [config]}}
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "wide"}, "spec": spec}
    path = f"/apis/resource.k8s.io/v1/namespaces/{lab.namespace}/resourceclaims"
    await lab.client.request("POST", path, body=json.dumps(body, indent=2).encode())

    await lab.pod("user", "wide")

    await lab.ready("user")
    assert await lab.devices("wide") == ["h0"]


async def test_a_claim_with_devices_of_another_node_is_reallocated(lab: Lab) -> None:
    await lab.device_class()
    nodes = await lab.nodes()
    await lab.publish(gpu("f0"), nodeName=nodes[0])
    await lab.publish(gpu("f1"), nodeName=nodes[1])
    await lab.claim("idle")
    there = {"key": "metadata.name", "operator": "In", "values": [nodes[0]]}
    allocation = {
        "devices": {"results": [{"request": "gpu", "driver": lab.driver, "pool": "pool-1", "device": "f0"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [there]}]},
    }
    await lab.client.patch_by_name(ResourceClaim, lab.key("idle"), {"metadata": {"finalizers": [FINALIZER]}})
    status = {"status": {"allocation": allocation}}
    await lab.client.patch_by_name(ResourceClaim, lab.key("idle"), status, subresource="status")

    await lab.pod("user", "idle", nodeSelector={"kubernetes.io/hostname": nodes[1]})

    await lab.ready("user")
    assert await lab.devices("idle") == ["f1"]


async def test_devices_of_an_incomplete_pool_are_not_allocated(lab: Lab) -> None:
    await lab.device_class()
    pool = {"name": "split", "generation": 7, "resourceSliceCount": 2}
    await lab.publish(gpu("g0"), pool=pool)
    await lab.claim("one")
    await lab.pod("user", "one")
    assert await lab.refused("user", "3 cannot allocate all claims")

    await lab.publish(gpu("g1"), pool=pool)
    assert is_ready(await lab.ready("user"))


@pytest.mark.real
async def test_pods_run_where_the_server_has_no_devices(real_binaries: Binaries) -> None:
    flags = {"runtime-config": "resource.k8s.io/v1=false"}
    async with RealCluster(start_timeout=300, version=real_binaries.version, nodes=1, apiserver_flags=flags) as cluster:
        created = await cluster.client.create(pod("web", "default"))

        running = await until(cluster.client, Pod, created.key, is_ready)
        assert running.spec.node_name == "node-1"
