"""Who owns whom, and the work that follows from what happens."""

from __future__ import annotations

from datetime import UTC, datetime

from kubewright.api.metadata import ObjectMeta, OwnerReference
from kubewright.cluster.controller_manager.garbage.graph import FOREGROUND, ORPHAN, Graph, Ref, Work

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def ref(uid: str, *, namespace: str = "shop", kind: str = "ConfigMap") -> Ref:
    return Ref("v1", kind, namespace, uid, uid)


def owned_by(*uids: str, block: bool | None = None, name: str = "") -> ObjectMeta:
    owners = [
        OwnerReference(api_version="v1", kind="ConfigMap", name=name or uid, uid=uid, block_owner_deletion=block)
        for uid in uids
    ]
    return ObjectMeta(owner_references=owners)


def leaving(*finalizers: str, owners: ObjectMeta | None = None) -> ObjectMeta:
    metadata = owners or ObjectMeta()
    metadata.deletion_timestamp = NOW
    metadata.finalizers = list(finalizers)
    return metadata


def look_at(*uids: str) -> list[Work]:
    return [("delete", uid) for uid in uids]


def test_the_children_of_an_owner_that_went_are_to_be_looked_at() -> None:
    graph = Graph()
    graph.observe(ref("owner"), ObjectMeta())
    assert graph.observe(ref("child"), owned_by("owner")) == []

    assert graph.gone("owner") == look_at("child")


def test_an_owner_that_was_not_seen_is_to_be_looked_at_once() -> None:
    graph = Graph()

    assert graph.observe(ref("a"), owned_by("owner")) == look_at("owner")
    assert graph.observe(ref("b"), owned_by("owner")) == []
    assert graph.members["owner"].virtual


def test_a_virtual_owner_that_is_seen_becomes_real() -> None:
    graph = Graph()
    graph.observe(ref("child"), owned_by("owner"))

    assert graph.observe(ref("owner"), ObjectMeta()) == []

    assert not graph.members["owner"].virtual
    assert graph.gone("owner") == look_at("child")


def test_a_virtual_owner_that_never_was_sends_its_children_to_be_looked_at() -> None:
    graph = Graph()
    graph.observe(ref("child"), owned_by("owner"))

    assert graph.never_was(ref("owner")) == look_at("child")
    assert "owner" not in graph.members


def test_children_that_name_an_owner_by_other_coordinates_are_not_mixed_up() -> None:
    graph = Graph()
    graph.observe(ref("bad"), owned_by("owner", name="wrong"))
    graph.observe(ref("good"), owned_by("owner", name="owner"))

    wrong = graph.members["owner"].ref
    work = graph.never_was(wrong)

    assert wrong.name == "wrong"
    assert work == look_at("bad")
    assert graph.members["owner"].virtual
    assert graph.members["owner"].ref.name == "owner"


def test_an_owner_in_another_namespace_is_reported() -> None:
    graph = Graph()
    graph.observe(ref("owner", namespace="other"), ObjectMeta())

    assert graph.observe(ref("child"), owned_by("owner")) == look_at("child")

    ((child, owner),) = graph.misplaced
    assert child == ref("child")
    assert str(owner) == "[v1/ConfigMap, namespace: shop, name: owner, uid: owner]"


def test_an_owner_in_another_namespace_is_reported_whoever_is_seen_first() -> None:
    graph = Graph()
    graph.observe(ref("child"), owned_by("owner"))

    assert graph.observe(ref("owner", namespace="other"), ObjectMeta()) == look_at("child")
    assert len(graph.misplaced) == 1


def test_an_owner_without_a_namespace_may_own_anybody() -> None:
    graph = Graph()
    graph.observe(ref("owner", namespace=""), ObjectMeta())

    assert graph.observe(ref("child"), owned_by("owner")) == []
    assert graph.misplaced == []


def test_a_foreground_deletion_looks_at_the_dependents_and_then_at_the_owner() -> None:
    graph = Graph()
    graph.observe(ref("owner"), ObjectMeta())
    graph.observe(ref("child"), owned_by("owner", block=True))
    graph.observe(ref("free"), owned_by("owner"))

    assert graph.observe(ref("owner"), leaving(FOREGROUND)) == look_at("child", "free", "owner")
    assert [member.ref.uid for member in graph.members["owner"].blocking()] == ["child"]
    assert graph.gone("child") == look_at("owner")


def test_a_child_that_no_longer_blocks_lets_its_owner_be_looked_at() -> None:
    graph = Graph()
    graph.observe(ref("owner"), ObjectMeta())
    graph.observe(ref("child"), owned_by("owner", block=True))
    graph.observe(ref("owner"), leaving(FOREGROUND))

    assert graph.observe(ref("child"), owned_by("owner", block=False)) == look_at("owner")
    assert graph.observe(ref("child"), ObjectMeta()) == look_at("owner")
    assert graph.members["owner"].dependents == {}


def test_a_late_comer_goes_with_an_owner_that_is_on_its_way_out() -> None:
    graph = Graph()
    graph.observe(ref("owner"), leaving(FOREGROUND))

    assert graph.observe(ref("child"), owned_by("owner")) == look_at("child")


def test_an_owner_that_lets_its_children_go_is_to_be_orphaned() -> None:
    graph = Graph()
    graph.observe(ref("owner"), ObjectMeta())

    assert graph.observe(ref("owner"), leaving(ORPHAN)) == [("orphan", "owner")]


def test_an_owner_whose_kind_is_out_of_sight_is_not_gone() -> None:
    graph = Graph()
    graph.observe(ref("owner"), ObjectMeta())
    graph.observe(ref("child"), owned_by("owner"))

    assert graph.lost_sight("owner") == look_at("owner")
    assert graph.members["owner"].virtual
    assert graph.lost_sight("child") == []
    assert graph.members == {}


def test_the_same_state_again_is_no_work() -> None:
    graph = Graph()
    graph.observe(ref("owner"), ObjectMeta())
    graph.observe(ref("child"), owned_by("owner"))

    assert graph.observe(ref("child"), owned_by("owner")) == []
    assert graph.gone("nobody") == []
