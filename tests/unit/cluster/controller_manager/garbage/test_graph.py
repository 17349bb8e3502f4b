"""The dependency graph and the work items of its changes."""

from __future__ import annotations

from datetime import UTC, datetime

from kubewright.api.metadata import ObjectMeta, OwnerReference
from kubewright.cluster.controller_manager.garbage.graph import FOREGROUND, ORPHAN, Graph, ObjectReference, WorkItem

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def ref(uid: str, *, namespace: str = "shop", kind: str = "ConfigMap") -> ObjectReference:
    return ObjectReference("v1", kind, namespace, uid, uid)


def owned_by(*uids: str, block: bool | None = None, name: str = "") -> ObjectMeta:
    owners = [
        OwnerReference(api_version="v1", kind="ConfigMap", name=name or uid, uid=uid, block_owner_deletion=block)
        for uid in uids
    ]
    return ObjectMeta(owner_references=owners)


def terminating(*finalizers: str, owners: ObjectMeta | None = None) -> ObjectMeta:
    metadata = owners or ObjectMeta()
    metadata.deletion_timestamp = NOW
    metadata.finalizers = list(finalizers)
    return metadata


def to_delete(*uids: str) -> list[WorkItem]:
    return [("delete", uid) for uid in uids]


def test_a_deleted_owner_enqueues_its_dependents() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), ObjectMeta())
    assert graph.add_or_update(ref("child"), owned_by("owner")) == []

    assert graph.remove("owner") == to_delete("child")


def test_an_unobserved_owner_is_enqueued_once() -> None:
    graph = Graph()

    assert graph.add_or_update(ref("a"), owned_by("owner")) == to_delete("owner")
    assert graph.add_or_update(ref("b"), owned_by("owner")) == []
    assert graph.nodes["owner"].virtual


def test_a_virtual_owner_that_is_observed_becomes_real() -> None:
    graph = Graph()
    graph.add_or_update(ref("child"), owned_by("owner"))

    assert graph.add_or_update(ref("owner"), ObjectMeta()) == []

    assert not graph.nodes["owner"].virtual
    assert graph.remove("owner") == to_delete("child")


def test_an_absent_virtual_owner_enqueues_its_dependents() -> None:
    graph = Graph()
    graph.add_or_update(ref("child"), owned_by("owner"))

    assert graph.owner_absent(ref("owner")) == to_delete("child")
    assert "owner" not in graph.nodes


def test_references_to_one_uid_by_other_coordinates_are_kept_apart() -> None:
    graph = Graph()
    graph.add_or_update(ref("bad"), owned_by("owner", name="wrong"))
    graph.add_or_update(ref("good"), owned_by("owner", name="owner"))

    wrong = graph.nodes["owner"].ref
    work = graph.owner_absent(wrong)

    assert wrong.name == "wrong"
    assert work == to_delete("bad")
    assert graph.nodes["owner"].virtual
    assert graph.nodes["owner"].ref.name == "owner"


def test_an_owner_in_another_namespace_is_reported() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner", namespace="other"), ObjectMeta())

    assert graph.add_or_update(ref("child"), owned_by("owner")) == to_delete("child")

    ((child, owner),) = graph.invalid_namespace_references
    assert child == ref("child")
    assert str(owner) == "[v1/ConfigMap, namespace: shop, name: owner, uid: owner]"


def test_an_owner_in_another_namespace_is_reported_in_any_order_of_events() -> None:
    graph = Graph()
    graph.add_or_update(ref("child"), owned_by("owner"))

    assert graph.add_or_update(ref("owner", namespace="other"), ObjectMeta()) == to_delete("child")
    assert len(graph.invalid_namespace_references) == 1


def test_a_cluster_scoped_owner_may_own_any_object() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner", namespace=""), ObjectMeta())

    assert graph.add_or_update(ref("child"), owned_by("owner")) == []
    assert graph.invalid_namespace_references == []


def test_a_foreground_deletion_enqueues_the_dependents_and_then_the_owner() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), ObjectMeta())
    graph.add_or_update(ref("child"), owned_by("owner", block=True))
    graph.add_or_update(ref("free"), owned_by("owner"))

    assert graph.add_or_update(ref("owner"), terminating(FOREGROUND)) == to_delete("child", "free", "owner")
    assert [node.ref.uid for node in graph.nodes["owner"].blocking_dependents()] == ["child"]
    assert graph.remove("child") == to_delete("owner")


def test_a_dependent_that_stops_blocking_enqueues_its_owner() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), ObjectMeta())
    graph.add_or_update(ref("child"), owned_by("owner", block=True))
    graph.add_or_update(ref("owner"), terminating(FOREGROUND))

    assert graph.add_or_update(ref("child"), owned_by("owner", block=False)) == to_delete("owner")
    assert graph.add_or_update(ref("child"), ObjectMeta()) == to_delete("owner")
    assert graph.nodes["owner"].dependents == {}


def test_a_new_dependent_of_a_foreground_deleted_owner_is_enqueued() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), terminating(FOREGROUND))

    assert graph.add_or_update(ref("child"), owned_by("owner")) == to_delete("child")


def test_an_owner_with_the_finalizer_orphan_is_enqueued_to_orphan() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), ObjectMeta())

    assert graph.add_or_update(ref("owner"), terminating(ORPHAN)) == [("orphan", "owner")]


def test_an_owner_whose_kind_is_not_watched_becomes_virtual() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), ObjectMeta())
    graph.add_or_update(ref("child"), owned_by("owner"))

    assert graph.make_virtual("owner") == to_delete("owner")
    assert graph.nodes["owner"].virtual
    assert graph.make_virtual("child") == []
    assert graph.nodes == {}


def test_an_unchanged_object_enqueues_nothing() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), ObjectMeta())
    graph.add_or_update(ref("child"), owned_by("owner"))

    assert graph.add_or_update(ref("child"), owned_by("owner")) == []
    assert graph.remove("nobody") == []
