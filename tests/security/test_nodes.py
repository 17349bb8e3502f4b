"""A kubelet's certificate opens what is bound to its node, and nothing else: node authorizer and NodeRestriction.

Covers: kubewright.apiserver.auth, kubewright.apiserver.admission.node_restriction
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from tests.planes import Plane
from tests.security.callers import APPLY, Answer, Caller, caller
from tests.security.certificates import certificate_request, name

from kubewright import Client

MERGE = "application/merge-patch+json"
MIRROR = "kubernetes.io/config.mirror"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


@dataclass
class Cluster:
    """Two nodes, each with a pod that refers to objects of its own; the kubelet of the first one asks."""

    admin: Caller
    kubelet: Caller
    namespace: str
    mine: str
    other: str
    uids: dict[str, str]

    def path(self, resource: str, name: str = "", namespace: str = "") -> str:
        return f"/api/v1/namespaces/{namespace or self.namespace}/{resource}" + (f"/{name}" if name else "")

    async def make(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await self.admin.send("POST", path, body)
        assert answer.code == 201, answer
        tree: dict[str, Any] = answer.body
        return tree


def pod(name: str, node: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example.io/app:1", **spec.pop("container", {})}
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [container], **spec}}


def references(prefix: str) -> dict[str, Any]:
    """The parts of a pod that refer to objects whose names begin with this."""
    environment = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": f"{prefix}-env", "key": "a"}}}]
    sources = [{"secret": {"name": f"{prefix}-projected"}}, {"configMap": {"name": f"{prefix}-config"}}]
    volumes = [
        {"name": "a", "secret": {"secretName": f"{prefix}-volume"}},
        {"name": "b", "projected": {"sources": sources}},
        {"name": "c", "persistentVolumeClaim": {"claimName": f"{prefix}-claim"}},
    ]
    return {
        "container": {"env": environment},
        "volumes": volumes,
        "imagePullSecrets": [{"name": f"{prefix}-pull"}],
        "serviceAccountName": f"{prefix}-robot",
    }


@pytest.fixture(scope="module")
async def cluster(plane: Plane, client: Client) -> AsyncIterator[Cluster]:
    word = uuid4().hex[:8]
    mine, other, namespace = f"mine-{word}", f"other-{word}", f"nodes-{word}"
    admin = await caller(plane, "", kubeconfig=plane.kubeconfig)
    kubelet = await caller(plane, f"system:node:{mine}", "system:nodes")
    made = Cluster(admin, kubelet, namespace, mine, other, {})
    await made.make("/api/v1/namespaces", {"metadata": {"name": namespace}})
    driver = {"tokenRequests": [{"audience": "disks"}]}
    await made.make("/apis/storage.k8s.io/v1/csidrivers", {"metadata": {"name": f"disks-{word}"}, "spec": driver})
    for prefix, node in (("mine", mine), ("other", other)):
        tree = await made.make("/api/v1/nodes", {"metadata": {"name": node}})
        made.uids[node] = tree["metadata"]["uid"]
        await made.make(made.path("serviceaccounts"), {"metadata": {"name": f"{prefix}-robot"}})
        await made.make(made.path("configmaps"), {"metadata": {"name": f"{prefix}-config"}})
        for kind in ("env", "projected", "volume", "pull", "disk"):
            await made.make(made.path("secrets"), {"metadata": {"name": f"{prefix}-{kind}"}})
        size = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
        claim = {"metadata": {"name": f"{prefix}-claim"}, "spec": {**size, "storageClassName": "", "volumeName": node}}
        await made.make(made.path("persistentvolumeclaims"), claim)
        disk = {"driver": f"disks-{word}", "volumeHandle": node,
                "nodePublishSecretRef": {"name": f"{prefix}-disk", "namespace": namespace}}  # fmt: skip
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": disk,
                "claimRef": {"namespace": namespace, "name": f"{prefix}-claim"}}  # fmt: skip
        await made.make("/api/v1/persistentvolumes", {"metadata": {"name": node}, "spec": spec})
        tree = await made.make(made.path("pods"), pod(f"{prefix}-pod", node, **references(prefix)))
        made.uids[f"{prefix}-pod"] = tree["metadata"]["uid"]
        attachment = {"attacher": f"disks-{word}", "nodeName": node, "source": {"persistentVolumeName": node}}
        path = "/apis/storage.k8s.io/v1/volumeattachments"
        await made.make(path, {"metadata": {"name": node}, "spec": attachment})
        pool = {
            "driver": "devices.example.io",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        }
        await made.make(SLICES, {"metadata": {"name": node}, "spec": pool})
    await made.make(made.path("secrets"), {"metadata": {"name": "nobodys"}})
    yield made
    for node in (mine, other):
        await admin.send("DELETE", f"/api/v1/nodes/{node}")


async def eventually(kubelet: Caller, path: str) -> Answer:
    """The answer of a server whose graph may be a moment behind."""
    for _ in range(200):
        answer = await kubelet.send("GET", path)
        if answer.code == 200:
            break
    return answer


NAMESPACED = [
    ("secrets", "env"), ("secrets", "projected"), ("secrets", "volume"), ("secrets", "pull"), ("secrets", "disk"),
    ("configmaps", "config"), ("persistentvolumeclaims", "claim"), ("serviceaccounts", "robot"), ("pods", "pod"),
]  # fmt: skip


@pytest.mark.parametrize(("resource", "what"), NAMESPACED)
async def test_a_node_reads_what_its_pods_refer_to(cluster: Cluster, resource: str, what: str) -> None:
    mine = await eventually(cluster.kubelet, cluster.path(resource, f"mine-{what}"))
    other = await cluster.kubelet.send("GET", cluster.path(resource, f"other-{what}"))

    assert mine.code == 200
    assert other.code == 403
    assert other.message.endswith(f": no relationship found between node '{cluster.mine}' and this object")


@pytest.mark.parametrize(
    "collection", ["/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/volumeattachments", SLICES]
)
async def test_a_node_reads_what_names_it(cluster: Cluster, collection: str) -> None:
    assert (await eventually(cluster.kubelet, f"{collection}/{cluster.mine}")).code == 200
    assert (await cluster.kubelet.send("GET", f"{collection}/{cluster.other}")).code == 403


async def test_a_node_reads_by_field_selectors_of_its_own(cluster: Cluster) -> None:
    async def code(path: str) -> int:
        return (await cluster.kubelet.send("GET", path)).code

    secrets = cluster.path("secrets")
    await eventually(cluster.kubelet, f"{secrets}?fieldSelector=metadata.name=mine-env")
    for path, allowed in [
        (f"{secrets}?fieldSelector=metadata.name=mine-env", True),
        (f"{secrets}?fieldSelector=metadata.name=other-env", False),
        (secrets, False),
        ("/api/v1/secrets?fieldSelector=metadata.name=mine-env", False),
        (f"/api/v1/nodes/{cluster.mine}", True),
        (f"/api/v1/nodes/{cluster.other}", False),
        (f"/api/v1/nodes?fieldSelector=metadata.name={cluster.mine}", True),
        ("/api/v1/nodes", False),
        (f"/api/v1/pods?fieldSelector=spec.nodeName={cluster.mine}", True),
        (f"/api/v1/pods?fieldSelector=spec.nodeName={cluster.other}", False),
        (f"/api/v1/pods?fieldSelector=spec.nodeName!={cluster.mine}", False),
        ("/api/v1/pods", False),
        (f"{SLICES}?fieldSelector=spec.nodeName={cluster.mine}", True),
        (SLICES, False),
        ("/api/v1/services", True),
        ("/apis/storage.k8s.io/v1/csidrivers", True),
        ("/api/v1/namespaces", False),
        ("/apis/apps/v1/deployments", False),
    ]:
        assert (path, await code(path)) == (path, 200 if allowed else 403)


async def test_a_node_writes_about_itself_only(cluster: Cluster) -> None:
    mine, other, kubelet = cluster.mine, cluster.other, cluster.kubelet

    async def refused(answer: Answer, why: str) -> None:
        assert (answer.code, why in answer.message) == (403, True), answer

    def named(node: str, **more: Any) -> dict[str, Any]:
        return {"metadata": {"name": node}, **more}

    assert (await kubelet.send("POST", LEASES, named(mine, spec={}))).code == 201
    await refused(
        await kubelet.send("POST", LEASES, named(other, spec={})), "with the same name as the requesting node"
    )
    elsewhere = LEASES.replace("kube-node-lease", cluster.namespace)
    await refused(await kubelet.send("POST", elsewhere, named(mine)), 'can only access leases in the "kube-node-lease"')
    applied = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **named(other)}
    answer = await kubelet.send("PATCH", f"{LEASES}/{other}?fieldManager=k", applied, content_type=APPLY)
    await refused(answer, "with the same name as the requesting node")

    assert (await kubelet.send("POST", CSI_NODES, named(mine, spec={"drivers": []}))).code == 201
    answer = await kubelet.send("POST", CSI_NODES, named(other, spec={"drivers": []}))
    await refused(answer, "can only access CSINode with the same name")

    pool = {
        "driver": "more.example.io",
        "nodeName": other,
        "pool": {"name": "x", "generation": 1, "resourceSliceCount": 1},
    }
    answer = await kubelet.send("POST", SLICES, named(f"{mine}-more", spec=pool))
    await refused(answer, "can only create ResourceSlice with the same NodeName as the requesting node")
    answer = await kubelet.send("DELETE", f"{SLICES}/{other}")
    await refused(answer, "no relationship found")


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ({"metadata": {"labels": {"kubernetes.io/hostname": "x", "example.io/a": "b"}}}, ""),
        ({"metadata": {"labels": {"node-restriction.kubernetes.io/secure": "yes"}}},
         "is not allowed to modify labels: node-restriction.kubernetes.io/secure"),
        ({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}},
         "is not allowed to modify labels: node-role.kubernetes.io/control-plane"),
        ({"spec": {"taints": []}}, ""),
        ({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, "is not allowed to modify taints"),
        ({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}]}},
         "is not allowed to modify ownerReferences"),
    ],
    ids=["labels", "restricted-label", "kubernetes-label", "same-taints", "taints", "owners"],
)  # fmt: skip
@pytest.mark.parametrize("subresource", ["", "/status"])
async def test_a_node_does_not_bring_pods_to_itself(
    cluster: Cluster, patch: dict[str, Any], why: str, subresource: str
) -> None:
    if "taints" in patch.get("spec", {}) and not patch["spec"]["taints"]:
        live = await cluster.kubelet.send("GET", f"/api/v1/nodes/{cluster.mine}")
        patch = {"spec": {"taints": live.body["spec"].get("taints")}}
    path = f"/api/v1/nodes/{cluster.mine}{subresource}"

    answer = await cluster.kubelet.send("PATCH", path, patch, content_type=MERGE)

    if not why:
        assert answer.code == 200, answer
    elif subresource and "labels" not in why:
        # What a status does not change is put back before NodeRestriction sees it, or refused by it.
        live = await cluster.kubelet.send("GET", f"/api/v1/nodes/{cluster.mine}")
        assert not live.body["metadata"].get("ownerReferences")
        assert not [taint for taint in live.body["spec"].get("taints") or () if taint["key"] == "a"]
    else:
        assert (answer.code, why in answer.message) == (403, True), answer


async def test_a_node_changes_no_other_node(cluster: Cluster) -> None:
    for subresource in ("", "/status"):
        path = f"/api/v1/nodes/{cluster.other}{subresource}"
        answer = await cluster.kubelet.send("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
        assert answer.code == 403
        assert f'node "{cluster.mine}" is not allowed to modify node "{cluster.other}"' in answer.message
    answer = await cluster.kubelet.send("POST", "/api/v1/nodes", {"metadata": {"name": f"{cluster.mine}-second"}})
    assert answer.code == 403
    assert (await cluster.kubelet.send("DELETE", f"/api/v1/nodes/{cluster.mine}")).code == 403


def mirror(cluster: Cluster, **spec: Any) -> dict[str, Any]:
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": cluster.mine,
        "uid": cluster.uids[cluster.mine],
        "controller": True,
    }
    tree = pod(f"mirror-{uuid4().hex[:6]}", cluster.mine, **spec)
    tree["metadata"] |= {"annotations": {MIRROR: "abc"}, "ownerReferences": [owner]}
    return tree


async def test_a_node_creates_mirror_pods_that_refer_to_nothing(cluster: Cluster) -> None:
    async def create(tree: dict[str, Any]) -> Answer:
        return await cluster.kubelet.send("POST", cluster.path("pods"), tree)

    good = await create(mirror(cluster))
    assert good.code == 201
    plain, elsewhere, ownerless, blocking, of_another = (mirror(cluster) for _ in range(5))
    plain["metadata"]["annotations"] = {}
    elsewhere["spec"]["nodeName"] = cluster.other
    ownerless["metadata"]["ownerReferences"] = []
    blocking["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = True
    of_another["metadata"]["ownerReferences"][0]["uid"] = cluster.uids[cluster.other]
    who = f'node "{cluster.mine}"'
    for tree, why in [
        (plain, f'pod does not have "{MIRROR}" annotation, {who} can only create mirror pods'),
        (elsewhere, f"{who} can only create pods with spec.nodeName set to itself"),
        (ownerless, f"{who} can only create pods with an owner reference set to itself"),
        (blocking, f"{who} must not set blockOwnerDeletion on an owner reference"),
        (of_another, f"node {cluster.mine} UID mismatch: expected {cluster.uids[cluster.other]}"),
        (mirror(cluster, volumes=[{"name": "a", "secret": {"secretName": "nobodys"}}]),
         "a mirror pod may not reference secrets"),
        (mirror(cluster, volumes=[{"name": "a", "persistentVolumeClaim": {"claimName": "other-claim"}}]),
         "that reference persistentvolumeclaims"),
        (mirror(cluster, container={"envFrom": [{"configMapRef": {"name": "other-config"}}]}),
         "that reference configmaps"),
    ]:  # fmt: skip
        answer = await create(tree)
        assert (answer.code, why in answer.message) == (403, True), answer
    path = cluster.path("pods", good.body["metadata"]["name"])
    update = await cluster.kubelet.send("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    assert update.code == 403
    assert (await cluster.kubelet.send("DELETE", f"{path}?gracePeriodSeconds=0")).code == 200


async def test_a_node_reports_deletes_and_evicts_its_own_pods(cluster: Cluster) -> None:
    kubelet, who = cluster.kubelet, f'node "{cluster.mine}"'
    status = {"status": {"message": "told"}}
    mine, other = (cluster.path("pods", f"{prefix}-pod") for prefix in ("mine", "other"))

    assert (await kubelet.send("PATCH", f"{mine}/status", status, content_type=MERGE)).code == 200
    labels = {"metadata": {"labels": {"a": "b"}}}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other-pod"}}
    for answer, why in [
        (await kubelet.send("PATCH", f"{mine}/status", labels, content_type=MERGE),
         f"{who} cannot update labels through pod status"),
        (await kubelet.send("PATCH", f"{other}/status", status, content_type=MERGE),
         f"{who} can only update pod status for pods with spec.nodeName set to itself"),
        (await kubelet.send("DELETE", other), f"{who} can only delete pods with spec.nodeName set to itself"),
        (await kubelet.send("POST", f"{other}/eviction", eviction),
         f"node {cluster.mine} can only evict pods with spec.nodeName set to itself"),
        (await kubelet.send("PATCH", mine, labels, content_type=MERGE), "cannot patch resource"),
        (await kubelet.send("DELETE", cluster.path("pods")), "cannot deletecollection resource"),
    ]:  # fmt: skip
        assert (answer.code, why in answer.message) == (403, True), answer


async def test_a_node_gets_tokens_of_its_own_pods(cluster: Cluster) -> None:
    path = cluster.path("serviceaccounts", "mine-robot/token")

    async def ask(pod_name: str = "mine-pod", uid: str = "", path: str = path, **spec: Any) -> Answer:
        bound = {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": uid or cluster.uids[pod_name]}
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"boundObjectRef": bound, **spec},
        }
        return await cluster.kubelet.send("POST", path, body)

    await eventually(cluster.kubelet, cluster.path("serviceaccounts", "mine-robot"))
    assert (await ask()).code == 201
    assert (await ask(audiences=["disks"])).code == 201  # the driver of its claim's volume wants it
    for answer, why in [
        (await ask(boundObjectRef=None), "node requested token not bound to a pod"),
        (await ask(boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "mine-pod"}),
         "node requested token with a pod binding without a uid"),
        (await ask(uid="another"), "the UID in the bound object reference (another) does not match"),
        (await ask("other-pod"), "node requested token bound to a pod scheduled on a different node"),
        (await ask(audiences=["vault"]), 'audience "vault" not found in pod spec volume'),
        (await ask(audiences=["a", "b"]), "node may only request 0 or 1 audiences"),
        (await ask("other-pod", path=cluster.path("serviceaccounts", "other-robot/token")), "no relationship found"),
        (await ask(path=cluster.path("serviceaccounts", "default/token")), "no relationship found"),
    ]:  # fmt: skip
        assert (answer.code, why in answer.message) == (403, True), answer


async def test_a_node_updates_the_size_of_its_claims_only(cluster: Cluster) -> None:
    mine, other = (cluster.path("persistentvolumeclaims", f"{prefix}-claim") for prefix in ("mine", "other"))
    size = {"status": {"conditions": [{"type": "FileSystemResizePending", "status": "True"}]}}
    await eventually(cluster.kubelet, mine)

    assert (await cluster.kubelet.send("PATCH", f"{mine}/status", size, content_type=MERGE)).code == 200
    relabel = {"metadata": {"labels": {"a": "b"}}}
    for answer, why in [
        (await cluster.kubelet.send("PATCH", f"{mine}/status", relabel, content_type=MERGE),
         "is not allowed to update fields other than status.quantity and status.conditions"),
        (await cluster.kubelet.send("PATCH", f"{other}/status", size, content_type=MERGE), "no relationship found"),
        (await cluster.kubelet.send("PATCH", mine, relabel, content_type=MERGE), "can only get individual resources"),
    ]:  # fmt: skip
        assert (answer.code, why in answer.message) == (403, True), answer


@pytest.mark.parametrize("subject", ["system:node:another", "system:admin"])
async def test_a_node_asks_for_no_other_nodes_certificate(cluster: Cluster, subject: str) -> None:
    async def ask(common_name: str) -> Answer:
        request = certificate_request(name(common_name, groups=("system:nodes",)))
        spec = {"request": base64.b64encode(request.certificate).decode(),
                "usages": ["digital signature", "client auth"],
                "signerName": "kubernetes.io/kube-apiserver-client-kubelet"}  # fmt: skip
        return await cluster.kubelet.send("POST", REQUESTS, {"metadata": {"generateName": "asked-"}, "spec": spec})

    assert (await ask(f"system:node:{cluster.mine}")).code == 201
    answer = await ask(subject)
    assert answer.code == 403
    assert f"can only create a node CSR with CN=system:node:{cluster.mine}" in answer.message


async def test_rights_end_with_the_pod(cluster: Cluster) -> None:
    title = f"short-{uuid4().hex[:6]}"
    secret = cluster.path("secrets", title)
    await cluster.make(cluster.path("secrets"), {"metadata": {"name": title}})
    assert (await cluster.kubelet.send("GET", secret)).code == 403
    volumes = [{"name": "a", "secret": {"secretName": title}}]
    await cluster.make(cluster.path("pods"), pod(title, cluster.mine, volumes=volumes))
    assert (await eventually(cluster.kubelet, secret)).code == 200

    path = cluster.path("pods", f"{title}?gracePeriodSeconds=0")
    assert (await cluster.admin.send("DELETE", path)).code == 200

    for _ in range(200):  # the graph of the real server is a moment behind
        answer = await cluster.kubelet.send("GET", secret)
        if answer.code == 403:
            break
    assert answer.code == 403


async def test_half_a_node_is_none(plane: Plane, cluster: Cluster) -> None:
    secret = cluster.path("secrets", "mine-env")
    for who, groups in (
        (f"system:node:{cluster.mine}", ()),
        (cluster.mine, ("system:nodes",)),
        ("system:node:", ("system:nodes",)),
    ):
        answer = await (await caller(plane, who, *groups)).send("GET", secret)
        assert answer.code == 403
