"""What the PodSecurity plugin does that no response shows: audit annotations, and namespaces with many pods."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.apiserver.admission.pod_security.levels import LABELS
from kubewright.apiserver.admission.pod_security.plugin import PodSecurity
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.responses import encode_json
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.apiserver.wire.users import ADMIN

CATALOG = Catalog(ServiceAllocator())
PLAIN: dict[str, Any] = {"containers": [{"name": "a", "image": "b"}], "hostPID": True}


def put(store: Store, table: str, key: str, tree: dict[str, Any]) -> None:
    store.table(table).put(key, encode_json(tree), store.next_version())


def namespace(store: Store, **labels: str) -> dict[str, Any]:
    """A namespace `shop` with these labels."""
    said = {LABELS + name.replace("_", "-"): value for name, value in labels.items()}
    tree = {"metadata": {"name": "shop", "labels": said}}
    put(store, "/namespaces", "shop", tree)
    return tree


def writes(plural: str, new: dict[str, Any], old: dict[str, Any] | None = None, *, group: str = "") -> Attributes:
    resource = CATALOG.find(group, "v1", plural)
    assert resource is not None
    return Attributes(
        operation="CREATE" if old is None else "UPDATE",
        resource=resource,
        namespace="shop" if resource.namespaced else "",
        name=str(new["metadata"]["name"]),
        object=new,
        old=old,
        user=ADMIN,
    )


def pod(**meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web", **meta}, "spec": PLAIN}


async def test_the_policy_a_pod_was_checked_against_is_noted() -> None:
    store = Store()
    plugin = PodSecurity(store)
    namespace(store, audit="baseline", enforce_version="v1.30")
    operation = writes("pods", pod())

    await plugin.validate(operation)

    assert operation.annotations == {
        f"{LABELS}enforce-policy": "privileged:v1.30",
        f"{LABELS}audit-violations": 'would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)',
    }
    assert list(operation.warnings) == []


async def test_labels_from_before_that_make_no_sense_are_noted_and_taken_for_the_strictest() -> None:
    store = Store()
    namespace(store, enforce="strict")
    plugin = PodSecurity(store)
    operation = writes("pods", pod())

    with pytest.raises(StatusError, match='violates PodSecurity "restricted:latest"'):
        await plugin.validate(operation)

    assert operation.annotations[f"{LABELS}error"].startswith("Failed to parse policy: metadata.labels[")


async def test_labels_that_never_made_sense_may_stay_as_they_are() -> None:
    store = Store()
    old = namespace(store, enforce="strict")
    plugin = PodSecurity(store)

    await plugin.validate(writes("namespaces", {"metadata": {**old["metadata"], "annotations": {"a": "b"}}}, old))
    changed = {LABELS + "enforce": "stricter"}
    with pytest.raises(StatusError, match="must be one of privileged, baseline, restricted"):
        await plugin.validate(writes("namespaces", {"metadata": {"name": "shop", "labels": changed}}, old))


async def test_where_no_namespace_has_labels_only_pods_and_namespaces_are_looked_at() -> None:
    store = Store()
    plugin = PodSecurity(store)
    put(store, "/namespaces", "shop", {"metadata": {"name": "shop", "labels": {"app": "web"}}})
    operations = [writes("configmaps", pod()), writes("deployments", pod(), group="apps"), writes("pods", pod())]

    assert [plugin.handles(operation) for operation in operations] == [False, False, True]

    namespace(store, warn="baseline")
    assert [plugin.handles(operation) for operation in operations] == [False, True, True]


async def test_of_many_pods_one_of_each_controller_comes_first() -> None:
    store = Store()
    plugin = PodSecurity(store)
    for number in range(3001):
        owner = [{"uid": "u", "controller": True}] if number else []
        name = f"p{number:04}"
        put(store, "/pods", f"shop/{name}", {"metadata": {"name": name, "ownerReferences": owner}, "spec": PLAIN})
    old = {"metadata": {"name": "shop"}}
    operation = writes("namespaces", {"metadata": {"name": "shop", "labels": {LABELS + "enforce": "baseline"}}}, old)

    await plugin.validate(operation)

    assert list(operation.warnings) == [
        "new PodSecurity enforce level only checked against the first 3000 of 3001 existing pods",
        'existing pods in namespace "shop" violate the new PodSecurity enforce level "baseline:latest"',
        "p0000 (and 2999 other pods): host namespaces",
    ]
