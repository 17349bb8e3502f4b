"""The books of the devices: what is taken, who waits, and which news count."""

from __future__ import annotations

from typing import Any

from kubewright.api.codec import from_tree
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.cache.changes import change_of
from kubewright.cluster.scheduler.devices.tracker import DeviceTracker
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice

DEVICE = ("gpu.example.com", "pool", "gpu-0")
RESULT = {"request": "r", "driver": DEVICE[0], "pool": DEVICE[1], "device": DEVICE[2]}
KEY = ObjectKey("ns", "claim")


def claim(version: int, *results: dict[str, Any], name: str = "claim") -> ResourceClaim:
    metadata = {"name": name, "namespace": "ns", "resourceVersion": str(version)}
    status = {"status": {"allocation": {"devices": {"results": list(results)}}}} if results else {}
    return from_tree(ResourceClaim, {"metadata": metadata, **status})


def pod(name: str, *claims: str, node: str = "", made: str = "") -> Pod:
    entries = [{"name": each, "resourceClaimName": each} for each in claims]
    spec: dict[str, Any] = {"containers": [{"name": "c"}], "resourceClaims": entries}
    tree: dict[str, Any] = {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": spec}
    if node:
        spec["nodeName"] = node
    if not claims:
        entries.append({"name": "own", "resourceClaimTemplateName": "t"})
        tree["status"] = {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": made}] if made else []}
    return from_tree(Pod, tree)


def tell(books: DeviceTracker, old: KubeObject | None, new: KubeObject | None) -> set[str]:
    """The names of the pods that a change wakes."""
    kind = type(new if new is not None else old)
    (watch,) = [each for each in books.watches() if each.kind is kind]
    assert callable(watch.mapper)
    change = change_of(old=old, new=new)
    return {key.name for key in watch.mapper(change)} if watch.when(change) else set()


def test_devices_are_taken_as_long_as_a_claim_has_them() -> None:
    books = DeviceTracker()

    tell(books, None, claim(1, RESULT))
    assert dict(books.taken) == {DEVICE: 1}
    tell(books, claim(1, RESULT), claim(2))
    assert not books.taken
    tell(books, None, claim(3, RESULT))
    tell(books, claim(3, RESULT), None)
    assert not books.taken


def test_access_of_administrators_takes_nothing() -> None:
    books = DeviceTracker()

    tell(books, None, claim(1, {**RESULT, "adminAccess": True}))

    assert not books.taken


def test_a_decision_outlives_older_news() -> None:
    books = DeviceTracker()
    books.assume(KEY, frozenset({DEVICE}))

    tell(books, claim(1), claim(2))  # the finalizer
    assert books.taken
    books.written(claim(3, RESULT))
    tell(books, claim(1), claim(2))  # late
    assert books.taken
    tell(books, claim(2), claim(4))  # given and taken away between two looks
    assert not books.taken


def test_a_decision_that_came_to_nothing_is_forgotten() -> None:
    books = DeviceTracker()
    books.assume(KEY, frozenset({DEVICE}))

    books.forget(KEY)

    assert not books.taken


def test_a_decision_that_somebody_else_made_differently_stands() -> None:
    books = DeviceTracker()
    books.assume(KEY, frozenset({DEVICE}))

    tell(books, claim(1), claim(2, {**RESULT, "device": "gpu-9"}))
    books.forget(KEY)

    assert dict(books.taken) == {(*DEVICE[:2], "gpu-9"): 1}


def test_a_claim_wakes_its_pods_and_free_devices_wake_all() -> None:
    books = DeviceTracker()
    for each in (pod("a", "claim"), pod("b", "other"), pod("c", "claim", node="n")):
        tell(books, None, each)

    assert tell(books, None, claim(1)) == {"a"}
    assert tell(books, claim(1), claim(2, RESULT)) == {"a"}
    assert tell(books, claim(2, RESULT), claim(3)) == {"a", "b"}


def test_classes_and_slices_wake_all_that_wait() -> None:
    books = DeviceTracker()
    tell(books, None, pod("a", "claim"))
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    a_slice = from_tree(ResourceSlice, {"metadata": {"name": "s"}, "spec": {"driver": "d", "pool": pool}})
    a_class = from_tree(DeviceClass, {"metadata": {"name": "k"}})

    assert tell(books, None, a_slice) == {"a"}
    assert tell(books, None, a_class) == {"a"}
    assert tell(books, a_slice, None) == tell(books, a_class, None) == set()
    assert (books.slices, books.classes) == ({}, {})


def test_a_pod_is_woken_when_its_claim_is_made_and_forgotten_when_it_has_a_node() -> None:
    books = DeviceTracker()
    waiting, named, placed = pod("a"), pod("a", made="a-own-x"), pod("a", made="a-own-x", node="n")

    assert tell(books, None, waiting) == {"a"}
    assert tell(books, waiting, waiting) == set()
    assert tell(books, waiting, named) == {"a"}
    assert tell(books, None, claim(1, name="a-own-x")) == {"a"}
    assert tell(books, named, placed) == set()
    assert tell(books, None, claim(1, name="a-own-x")) == set()


def test_pods_without_claims_leave_no_trace() -> None:
    books = DeviceTracker()
    plain = from_tree(Pod, {"metadata": {"name": "a", "namespace": "ns"}, "spec": {"containers": [{"name": "c"}]}})

    assert tell(books, None, plain) == set()
    assert tell(books, None, claim(1)) == set()
