"""Who owns whom, and the work that follows from what happens."""

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


def look_at(*uids: str) -> list[WorkItem]:
    return [("delete", uid) for uid in uids]


def test_the_children_of_an_owner_that_went_are_to_be_looked_at() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), ObjectMeta())
    assert graph.add_or_update(ref("child"), owned_by("owner")) == []

    assert graph.remove("owner") == look_at("child")


def test_an_owner_that_was_not_seen_is_to_be_looked_at_once() -> None:
    graph = Graph()

    assert graph.add_or_update(ref("a"), owned_by("owner")) == look_at("owner")
    assert graph.add_or_update(ref("b"), owned_by("owner")) == []
    assert graph.nodes["owner"].virtual


def test_a_virtual_owner_that_is_seen_becomes_real() -> None:
    graph = Graph()
    graph.add_or_update(ref("child"), owned_by("owner"))

    assert graph.add_or_update(ref("owner"), ObjectMeta()) == []

    assert not graph.nodes["owner"].virtual
    assert graph.remove("owner") == look_at("child")


def test_a_virtual_owner_that_never_was_sends_its_children_to_be_looked_at() -> None:
    graph = Graph()
    graph.add_or_update(ref("child"), owned_by("owner"))

    assert graph.owner_absent(ref("owner")) == look_at("child")
    assert "owner" not in graph.nodes


def test_children_that_name_an_owner_by_other_coordinates_are_not_mixed_up() -> None:
    graph = Graph()
    graph.add_or_update(ref("bad"), owned_by("owner", name="wrong"))
    graph.add_or_update(ref("good"), owned_by("owner", name="owner"))

    wrong = graph.nodes["owner"].ref
    work = graph.owner_absent(wrong)

    assert wrong.name == "wrong"
    assert work == look_at("bad")
    assert graph.nodes["owner"].virtual
    assert graph.nodes["owner"].ref.name == "owner"


def test_an_owner_in_another_namespace_is_reported() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner", namespace="other"), ObjectMeta())

    assert graph.add_or_update(ref("child"), owned_by("owner")) == look_at("child")

    ((child, owner),) = graph.invalid_namespace_references
    assert child == ref("child")
    assert str(owner) == "[v1/ConfigMap, namespace: shop, name: owner, uid: owner]"


def test_an_owner_in_another_namespace_is_reported_whoever_is_seen_first() -> None:
    graph = Graph()
    graph.add_or_update(ref("child"), owned_by("owner"))

    assert graph.add_or_update(ref("owner", namespace="other"), ObjectMeta()) == look_at("child")
    assert len(graph.invalid_namespace_references) == 1


def test_an_owner_without_a_namespace_may_own_anybody() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner", namespace=""), ObjectMeta())

    assert graph.add_or_update(ref("child"), owned_by("owner")) == []
    assert graph.invalid_namespace_references == []


def test_a_foreground_deletion_looks_at_the_dependents_and_then_at_the_owner() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), ObjectMeta())
    graph.add_or_update(ref("child"), owned_by("owner", block=True))
    graph.add_or_update(ref("free"), owned_by("owner"))

    assert graph.add_or_update(ref("owner"), terminating(FOREGROUND)) == look_at("child", "free", "owner")
    assert [node.ref.uid for node in graph.nodes["owner"].blocking_dependents()] == ["child"]
    assert graph.remove("child") == look_at("owner")


def test_a_child_that_no_longer_blocks_lets_its_owner_be_looked_at() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), ObjectMeta())
    graph.add_or_update(ref("child"), owned_by("owner", block=True))
    graph.add_or_update(ref("owner"), terminating(FOREGROUND))

    assert graph.add_or_update(ref("child"), owned_by("owner", block=False)) == look_at("owner")
    assert graph.add_or_update(ref("child"), ObjectMeta()) == look_at("owner")
    assert graph.nodes["owner"].dependents == {}


def test_a_late_comer_goes_with_an_owner_that_is_on_its_way_out() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), terminating(FOREGROUND))

    assert graph.add_or_update(ref("child"), owned_by("owner")) == look_at("child")


def test_an_owner_that_lets_its_children_go_is_to_be_orphaned() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), ObjectMeta())

    assert graph.add_or_update(ref("owner"), terminating(ORPHAN)) == [("orphan", "owner")]


def test_an_owner_whose_kind_is_out_of_sight_is_not_gone() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), ObjectMeta())
    graph.add_or_update(ref("child"), owned_by("owner"))

    assert graph.make_virtual("owner") == look_at("owner")
    assert graph.nodes["owner"].virtual
    assert graph.make_virtual("child") == []
    assert graph.nodes == {}


def test_the_same_state_again_is_no_work() -> None:
    graph = Graph()
    graph.add_or_update(ref("owner"), ObjectMeta())
    graph.add_or_update(ref("child"), owned_by("owner"))

    assert graph.add_or_update(ref("child"), owned_by("owner")) == []
    assert graph.remove("nobody") == []
