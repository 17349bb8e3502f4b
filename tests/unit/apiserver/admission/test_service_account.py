"""The ServiceAccount plugin: accounts and tokens for pods, and pods that wait for the account of a new namespace."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from tests.builders.admission import CATALOG, Admission
from tests.builders.pods import pod_tree

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.admission.service_account import ServiceAccount
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.apiserver.wire.users import ADMIN
from kubewright.testing.clock import VirtualClock

Tree = dict[str, Any]

POD = GroupVersionKind("", "v1", "Pod")


pod = partial(pod_tree, "a", "shop", container={"name": "a", "image": "b"})


def admitted(obj: Tree, account: Tree | None = None) -> Tree:
    admission = Admission()
    if account is not None:
        admission.put("v1", "ServiceAccount", account)
    return admission.mutate(POD, obj)


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
    default = {"metadata": {"name": "default"}, "automountServiceAccountToken": account}

    spec = admitted(pod(automountServiceAccountToken=own), default)["spec"]

    assert mounted == ("volumes" in spec)


def test_pull_secrets_come_with_the_account() -> None:
    default = {"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "s"}]}

    assert admitted(pod(), default)["spec"]["imagePullSecrets"] == [{"name": "s"}]
    own = pod(imagePullSecrets=[{"name": "o"}])
    assert admitted(own, default)["spec"]["imagePullSecrets"] == [{"name": "o"}]


@pytest.mark.parametrize(("metadata", "shown"), [({"name": "a"}, "a"), ({"generateName": "a-"}, "a-")])
def test_a_pod_without_its_account_is_refused(metadata: Tree, shown: str) -> None:
    with pytest.raises(StatusError) as caught:
        admitted({**pod(serviceAccountName="nope"), "metadata": metadata})

    why = 'error looking up service account shop/nope: serviceaccount "nope" not found'
    assert (caught.value.code, str(caught.value)) == (403, f'pods "{shown}" is forbidden: {why}')


def test_mirror_pods_are_left_alone() -> None:
    mirror = pod()
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}

    assert "serviceAccountName" not in admitted(mirror)["spec"]


# --- the account of a new namespace ---


def creating(plural: str = "pods", *, subresource: str = "", **tree: Any) -> Attributes:
    resource = CATALOG.find("", "v1", plural)
    assert resource is not None
    return Attributes("CREATE", resource, "shop", "web", tree, None, ADMIN, subresource=subresource)


def put_account(store: Store, key: str) -> None:
    store.table("/serviceaccounts").put(key, b"{}", store.next_version())


async def test_a_pod_waits_until_the_account_of_its_own_namespace_comes() -> None:
    store, clock = Store(), VirtualClock()
    held = asyncio.ensure_future(ServiceAccount(store, clock).mutate(creating()))
    await clock.advance(0.1)

    put_account(store, "other/default")
    put_account(store, "shop/builder")
    await clock.advance(0.1)
    assert not held.done()
    put_account(store, "shop/default")
    await held

    assert store.table("/serviceaccounts").watchers == 0


async def test_a_pod_does_not_wait_for_ever() -> None:
    store, clock = Store(), VirtualClock()
    held = asyncio.ensure_future(ServiceAccount(store, clock).mutate(creating()))

    await clock.advance(1.0)
    assert not held.done()
    await clock.advance(1.0)
    with pytest.raises(StatusError, match='serviceaccount "default" not found'):
        await held

    assert store.table("/serviceaccounts").watchers == 0


@pytest.mark.parametrize(
    ("spec", "waits"),
    [({}, True), ({"serviceAccountName": "default"}, True), ({"serviceAccountName": "builder"}, False)],
)
async def test_only_pods_that_want_the_default_account_wait(spec: Tree, waits: bool) -> None:
    store, clock = Store(), VirtualClock()
    held = asyncio.ensure_future(ServiceAccount(store, clock).mutate(creating(spec=spec)))
    await clock.advance(0.1)

    assert held.done() is not waits
    await clock.advance(2.0)
    with pytest.raises(StatusError):
        await held


async def test_a_mirror_pod_does_not_wait() -> None:
    mirror = creating(metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})

    await ServiceAccount(Store(), VirtualClock()).mutate(mirror)


def test_subresources_and_other_kinds_are_none_of_its_business() -> None:
    plugin = ServiceAccount(Store(), VirtualClock())

    assert plugin.handles(creating(spec={}))
    assert not plugin.handles(creating(subresource="binding"))
    assert not plugin.handles(creating("configmaps"))


async def test_nobody_waits_for_an_account_that_is_there() -> None:
    store = Store()
    put_account(store, "shop/default")

    await ServiceAccount(store, VirtualClock()).mutate(creating(spec={}))  # the clock stands still
