"""DeviceTracker: allocated devices, assumed claims and requeued pods."""

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


def pod(name: str, *claims: str, node: str = "", generated: str = "") -> Pod:
    entries = [{"name": each, "resourceClaimName": each} for each in claims]
    spec: dict[str, Any] = {"containers": [{"name": "c"}], "resourceClaims": entries}
    tree: dict[str, Any] = {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": spec}
    if node:
        spec["nodeName"] = node
    if not claims:
        entries.append({"name": "own", "resourceClaimTemplateName": "t"})
        tree["status"] = {
            "resourceClaimStatuses": [{"name": "own", "resourceClaimName": generated}] if generated else []
        }
    return from_tree(Pod, tree)


def notify(tracker: DeviceTracker, old: KubeObject | None, new: KubeObject | None) -> set[str]:
    """The names of the pods that a change requeues."""
    kind = type(new if new is not None else old)
    (watch,) = [each for each in tracker.watches() if each.kind is kind]
    assert callable(watch.mapper)
    change = change_of(old=old, new=new)
    return {key.name for key in watch.mapper(change)} if watch.when(change) else set()


def test_devices_are_allocated_while_a_claim_has_them() -> None:
    tracker = DeviceTracker()

    notify(tracker, None, claim(1, RESULT))
    assert dict(tracker.allocated) == {DEVICE: 1}
    notify(tracker, claim(1, RESULT), claim(2))
    assert not tracker.allocated
    notify(tracker, None, claim(3, RESULT))
    notify(tracker, claim(3, RESULT), None)
    assert not tracker.allocated


def test_admin_access_allocates_nothing() -> None:
    tracker = DeviceTracker()

    notify(tracker, None, claim(1, {**RESULT, "adminAccess": True}))

    assert not tracker.allocated


def test_an_assumed_allocation_outlives_older_events() -> None:
    tracker = DeviceTracker()
    tracker.assume(KEY, frozenset({DEVICE}))

    notify(tracker, claim(1), claim(2))  # the finalizer
    assert tracker.allocated
    tracker.allocation_written(claim(3, RESULT))
    notify(tracker, claim(1), claim(2))  # late
    assert tracker.allocated
    notify(tracker, claim(2), claim(4))  # allocated and deallocated between two events
    assert not tracker.allocated


def test_an_allocation_that_was_not_written_is_restored() -> None:
    tracker = DeviceTracker()
    tracker.assume(KEY, frozenset({DEVICE}))

    tracker.restore(KEY)

    assert not tracker.allocated


def test_an_allocation_of_another_scheduler_wins() -> None:
    tracker = DeviceTracker()
    tracker.assume(KEY, frozenset({DEVICE}))

    notify(tracker, claim(1), claim(2, {**RESULT, "device": "gpu-9"}))
    tracker.restore(KEY)

    assert dict(tracker.allocated) == {(*DEVICE[:2], "gpu-9"): 1}


def test_a_claim_requeues_its_pods_and_free_devices_requeue_all() -> None:
    tracker = DeviceTracker()
    for each in (pod("a", "claim"), pod("b", "other"), pod("c", "claim", node="n")):
        notify(tracker, None, each)

    assert notify(tracker, None, claim(1)) == {"a"}
    assert notify(tracker, claim(1), claim(2, RESULT)) == {"a"}
    assert notify(tracker, claim(2, RESULT), claim(3)) == {"a", "b"}


def test_classes_and_slices_requeue_all_pending_pods() -> None:
    tracker = DeviceTracker()
    notify(tracker, None, pod("a", "claim"))
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    a_slice = from_tree(ResourceSlice, {"metadata": {"name": "s"}, "spec": {"driver": "d", "pool": pool}})
    a_class = from_tree(DeviceClass, {"metadata": {"name": "k"}})

    assert notify(tracker, None, a_slice) == {"a"}
    assert notify(tracker, None, a_class) == {"a"}
    assert notify(tracker, a_slice, None) == notify(tracker, a_class, None) == set()
    assert (tracker.slices, tracker.classes) == ({}, {})


def test_a_pod_is_requeued_when_its_claim_is_generated_and_forgotten_when_it_is_bound() -> None:
    tracker = DeviceTracker()
    pending, generated_claim, bound = pod("a"), pod("a", generated="a-own-x"), pod("a", generated="a-own-x", node="n")

    assert notify(tracker, None, pending) == {"a"}
    assert notify(tracker, pending, pending) == set()
    assert notify(tracker, pending, generated_claim) == {"a"}
    assert notify(tracker, None, claim(1, name="a-own-x")) == {"a"}
    assert notify(tracker, generated_claim, bound) == set()
    assert notify(tracker, None, claim(1, name="a-own-x")) == set()


def test_pods_without_claims_are_not_tracked() -> None:
    tracker = DeviceTracker()
    plain = from_tree(Pod, {"metadata": {"name": "a", "namespace": "ns"}, "spec": {"containers": [{"name": "c"}]}})

    assert notify(tracker, None, plain) == set()
    assert notify(tracker, None, claim(1)) == set()
