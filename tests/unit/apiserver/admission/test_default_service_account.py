"""The judge that holds a pod back until its namespace has an account."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubewright.apiserver.admission.default_service_account import DefaultServiceAccount
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.kinds.calls import ADMIN
from kubewright.apiserver.storage.store import Store
from kubewright.testing.clock import VirtualClock

CATALOG = Catalog(ServiceAllocator())


def creating(plural: str = "pods", *, subresource: str = "", **tree: Any) -> Attributes:
    resource = CATALOG.find("", "v1", plural)
    assert resource is not None
    return Attributes("CREATE", resource, "shop", "web", tree, None, ADMIN, subresource=subresource)


def put_account(store: Store, key: str) -> None:
    store.table("/serviceaccounts").put(key, b"{}", store.next_version())


async def test_a_pod_waits_until_the_account_of_its_own_namespace_comes() -> None:
    store, clock = Store(), VirtualClock()
    held = asyncio.ensure_future(DefaultServiceAccount(store, clock).mutate(creating()))
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
    held = asyncio.ensure_future(DefaultServiceAccount(store, clock).mutate(creating()))

    await clock.advance(1.0)
    assert not held.done()
    await clock.advance(1.0)
    await held

    assert store.table("/serviceaccounts").watchers == 0


@pytest.mark.parametrize(
    ("operation", "waits"),
    [
        (creating(spec={}), True),
        (creating(spec={"serviceAccountName": "default"}), True),
        (creating(spec={"serviceAccountName": "builder"}), False),
        (creating(metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}), False),
        (creating(subresource="binding"), False),
        (creating("configmaps"), False),
    ],
)
def test_only_pods_that_want_the_default_account_wait(operation: Attributes, *, waits: bool) -> None:
    assert DefaultServiceAccount(Store(), VirtualClock()).handles(operation) is waits


def test_nobody_waits_for_an_account_that_is_there() -> None:
    store = Store()
    put_account(store, "shop/default")

    assert not DefaultServiceAccount(store, VirtualClock()).handles(creating(spec={}))
