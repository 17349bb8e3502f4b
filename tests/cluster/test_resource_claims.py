"""ResourceClaims are made from templates, held while a pod uses them, and let go when none does.

Nobody gives devices here: a case writes the allocation itself, and its pods ask for a scheduler that there is not.

Covers: kubewright.cluster.controller_manager.storage
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.planes import Plane

from kubewright import Client, ObjectKey
from kubewright.api.codec import from_tree
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import Event, Pod
from kubewright.k8s.resource.v1 import ResourceClaim, ResourceClaimTemplate
from kubewright.testing import gone, until

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
SPEC: dict[str, Any] = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "none.example.com"}}]}}
ALLOCATION: dict[str, Any] = {
    "devices": {
        "results": [{"request": "gpu", "driver": "none.example.com", "pool": "pool-1", "device": "gpu-1"}],
    }
}


class Claims:
    """Claims, templates and pods of one namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.namespace, name)

    async def template(self, name: str, **metadata: Any) -> None:
        content = {"metadata": metadata, "spec": SPEC} if metadata else {"spec": SPEC}
        tree = {"metadata": {"name": name, "namespace": self.namespace}, "spec": content}
        await self.client.create(from_tree(ResourceClaimTemplate, tree))

    async def claim(self, name: str) -> ResourceClaim:
        metadata = {"name": name, "namespace": self.namespace}
        return await self.client.create(from_tree(ResourceClaim, {"metadata": metadata, "spec": SPEC}))

    async def pod(self, name: str, *, node: str = "", **claims: str) -> Pod:
        """Claims by the pod's names for them; `template:` before the name of a template."""
        entries = []
        for entry, source in claims.items():
            kind, _, named = source.rpartition(":")
            field = "resourceClaimTemplateName" if kind else "resourceClaimName"
            entries.append({"name": entry, field: named})
        spec = {
            "containers": [
                {"name": "c", "image": "i:1", "resources": {"claims": [{"name": entry} for entry in claims]}}
            ],
            "resourceClaims": entries,
            "schedulerName": "nobody",
            "terminationGracePeriodSeconds": 0,
        }
        if node:
            spec["nodeName"] = node
        tree = {"metadata": {"name": name, "namespace": self.namespace}, "spec": spec}
        return await self.client.create(from_tree(Pod, tree))

    async def allocate(self, name: str, *pods: Pod) -> ResourceClaim:
        """What a scheduler does."""
        reserved = [{"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid} for pod in pods]
        await self.client.patch_by_name(ResourceClaim, self.key(name), {"metadata": {"finalizers": [FINALIZER]}})
        status = {"allocation": ALLOCATION, "reservedFor": reserved or None}
        return await self.client.patch_by_name(ResourceClaim, self.key(name), {"status": status}, subresource="status")

    async def phase(self, name: str, phase: str) -> None:
        await self.client.patch_by_name(Pod, self.key(name), {"status": {"phase": phase}}, subresource="status")

    async def names(self, pod: str, count: int = 1) -> dict[str, str]:
        """The generated claims of a pod, once its status names as many."""
        found = await self.podded(pod, lambda each: len(each.status.resource_claim_statuses or ()) == count)
        return {each.name: each.resource_claim_name or "" for each in found.status.resource_claim_statuses or ()}

    async def podded(self, name: str, holds: Callable[[Pod], object]) -> Pod:
        return await until(self.client, Pod, self.key(name), holds)

    async def claimed(self, name: str, holds: Callable[[ResourceClaim], object]) -> ResourceClaim:
        return await until(self.client, ResourceClaim, self.key(name), holds)


@pytest.fixture
def claims(client: Client, namespace: str) -> Claims:
    return Claims(client, namespace)


def users(claim: ResourceClaim) -> list[str]:
    return [each.name for each in claim.status.reserved_for or ()]


def is_free(claim: ResourceClaim) -> bool:
    return claim.status.allocation is None and not claim.metadata.finalizers


async def test_a_pod_gets_a_claim_for_each_template_it_names(claims: Claims) -> None:
    await claims.template("gpus", labels={"team": "vision"}, annotations={"note": "kept"})
    pod = await claims.pod("render", one="template:gpus", two="template:gpus")

    names = await claims.names("render", 2)

    assert set(names) == {"one", "two"}
    for entry, name in names.items():
        assert re.fullmatch(rf"render-{entry}-[a-z0-9]{{5}}", name)
        claim = await claims.client.get(ResourceClaim, claims.key(name))
        assert claim.metadata.generate_name == f"render-{entry}-"
        assert claim.metadata.labels == {"team": "vision"}
        assert claim.metadata.annotations == {"note": "kept", POD_CLAIM: entry}
        (owner,) = claim.metadata.owner_references
        assert (owner.api_version, owner.kind, owner.name, owner.uid) == ("v1", "Pod", "render", pod.metadata.uid)
        assert (owner.controller, owner.block_owner_deletion) == (True, None)
        assert claim.spec.devices is not None
        (request,) = claim.spec.devices.requests or []
        assert (request.name, request.exactly and request.exactly.count) == ("gpu", 1)
        assert not claim.metadata.finalizers


async def test_long_names_of_pod_and_claim_are_both_shortened(claims: Claims) -> None:
    await claims.template("gpus")
    pod, entry = "p" * 60, "e" * 30
    await claims.pod(pod, **{entry: "template:gpus"})

    (name,) = (await claims.names(pod)).values()

    assert re.fullmatch(r"p{37}-e{18}[a-z0-9]{5}", name)


async def test_a_missing_template_is_reported_and_retried(claims: Claims) -> None:
    await claims.pod("early", one="template:gpus")

    async with claims.client.watch(Event, namespace=claims.namespace, initial_events=True) as events:
        async for event in events:
            if event.object.reason == "FailedResourceClaimCreation":
                break
    assert (event.object.type, event.object.involved_object.name) == ("Warning", "early")
    missing = 'resource claim template "gpus": resourceclaimtemplate.resource.k8s.io "gpus" not found'
    assert event.object.message == f"PodResourceClaim one: {missing}"

    await claims.template("gpus")
    assert set(await claims.names("early")) == {"one"}


async def test_a_deleted_generated_claim_is_created_again(plane: Plane, claims: Claims) -> None:
    if isinstance(plane, RealCluster):
        pytest.skip("kube-controller-manager believes in what it made for an hour")
    await claims.template("gpus")
    await claims.pod("steady", one="template:gpus")
    first = (await claims.names("steady"))["one"]

    await claims.client.delete(ResourceClaim, claims.key(first))

    def is_another(pod: Pod) -> bool:
        return [each.resource_claim_name for each in pod.status.resource_claim_statuses or ()] != [first]

    await claims.podded("steady", is_another)
    second = (await claims.names("steady"))["one"]
    assert (await claims.claimed(second, lambda claim: True)).metadata.annotations == {POD_CLAIM: "one"}


async def test_a_generated_claim_is_deleted_with_its_pod(claims: Claims) -> None:
    await claims.template("gpus")
    pod = await claims.pod("short", one="template:gpus")
    name = (await claims.names("short"))["one"]
    await claims.allocate(name, pod)

    await claims.client.delete(Pod, claims.key("short"))

    await gone(claims.client, ResourceClaim, claims.key(name))


async def test_a_generated_claim_is_deleted_when_its_pod_is_done(claims: Claims) -> None:
    await claims.template("gpus")
    pod = await claims.pod("batch", one="template:gpus")
    claim = await claims.allocate((await claims.names("batch"))["one"], pod)

    await claims.phase("batch", "Succeeded")

    await gone(claims.client, ResourceClaim, claim.key, uid=claim.metadata.uid)


async def test_a_claim_stays_allocated_as_long_as_one_pod_uses_it(claims: Claims) -> None:
    await claims.claim("shared")
    pods = [await claims.pod(name, gpu="shared") for name in ("first", "second")]
    await claims.allocate("shared", *pods)

    await claims.client.delete(Pod, claims.key("first"))
    claim = await claims.claimed("shared", lambda each: users(each) == ["second"])
    assert claim.status.allocation is not None
    assert claim.metadata.finalizers == [FINALIZER]

    await claims.phase("second", "Failed")
    claim = await claims.claimed("shared", is_free)
    assert users(claim) == []
    assert claim.metadata.deletion_timestamp is None


async def test_a_reservation_for_a_missing_pod_is_removed(claims: Claims) -> None:
    await claims.claim("stale")
    pod = await claims.pod("real", gpu="stale")
    ghost = from_tree(Pod, {"metadata": {"name": "ghost", "uid": "5c1f4d5c-7c8f-4f2e-9d1c-0d5b1f6a7e11"}})
    former = from_tree(Pod, {"metadata": {"name": "real", "uid": "5c1f4d5c-7c8f-4f2e-9d1c-0d5b1f6a7e12"}})

    await claims.allocate("stale", ghost, pod, former)

    claim = await claims.claimed("stale", lambda each: users(each) == ["real"])
    assert (claim.status.reserved_for or [])[0].uid == pod.metadata.uid
    assert claim.status.allocation is not None


async def test_an_allocated_claim_without_reservations_stays_allocated_until_it_is_deleted(claims: Claims) -> None:
    await claims.claim("kept")
    await claims.allocate("kept")
    # By the time this one is let go of, the other has been looked at as well.
    await claims.claim("other")
    await claims.allocate("other", from_tree(Pod, {"metadata": {"name": "ghost", "uid": "1"}}))
    await claims.claimed("other", is_free)

    claim = await claims.client.get(ResourceClaim, claims.key("kept"))
    assert claim.status.allocation is not None
    assert claim.metadata.finalizers == [FINALIZER]

    await claims.client.delete(ResourceClaim, claims.key("kept"))
    await gone(claims.client, ResourceClaim, claims.key("kept"))


async def test_a_deleted_claim_stays_until_the_last_pod_is_done(claims: Claims) -> None:
    await claims.claim("used")
    pod = await claims.pod("user", gpu="used")
    await claims.allocate("used", pod)

    await claims.client.delete(ResourceClaim, claims.key("used"))
    claim = await claims.client.get(ResourceClaim, claims.key("used"))
    assert claim.metadata.deletion_timestamp is not None
    assert users(claim) == ["user"]

    await claims.phase("user", "Succeeded")
    await gone(claims.client, ResourceClaim, claims.key("used"))


async def test_allocated_claims_are_reserved_for_a_pod_with_a_node_name(claims: Claims) -> None:
    await claims.claim("ready")
    await claims.allocate("ready")

    pod = await claims.pod("pinned", node="somewhere", gpu="ready")

    claim = await claims.claimed("ready", users)
    (user,) = claim.status.reserved_for or []
    assert (user.api_group, user.resource, user.name, user.uid) == (None, "pods", "pinned", pod.metadata.uid)
