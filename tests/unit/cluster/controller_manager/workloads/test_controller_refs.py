"""Which owners a change of a child requeues."""

from __future__ import annotations

from typing import Any

from kubewright import ObjectKey, ObjectMeta, Selector
from kubewright.api import OwnerReference
from kubewright.cache.changes import Change, change_of
from kubewright.cluster.controller_manager.workloads.controller_refs import ControllerRefManager
from kubewright.controllers.mapping import ByIndex, ToAll
from kubewright.k8s.apps.v1 import ReplicaSet, ReplicaSetSpec
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.meta.v1 import LabelSelector


def claims() -> ControllerRefManager[ReplicaSet, Pod]:
    return ControllerRefManager(ReplicaSet, Pod, lambda owner: Selector.from_structured(owner.spec.selector))


def replica_set(name: str, app: str) -> ReplicaSet:
    selector = LabelSelector(match_labels={"app": app} if app else {})
    metadata = ObjectMeta(name=name, namespace="shop", uid=name, generation=1)
    return ReplicaSet(metadata=metadata, spec=ReplicaSetSpec(selector=selector))


def pod(app: str, owner: str = "") -> Pod:
    owners = [OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=owner, uid=owner, controller=True)]
    metadata = ObjectMeta(name="p", namespace="shop", labels={"app": app}, owner_references=owners if owner else [])
    return Pod(metadata=metadata)


def told(given: ControllerRefManager[ReplicaSet, Pod], change: Change[Any]) -> list[str]:
    owners, children = given.watches
    watch = owners if change.kind is ReplicaSet else children
    assert not isinstance(watch.mapper, ByIndex | ToAll)
    return sorted(key.name for key in watch.mapper(change))


def test_an_orphan_requeues_owners_that_may_adopt_it() -> None:
    given = claims()
    for owner in (replica_set("a", "web"), replica_set("b", "web"), replica_set("c", "db"), replica_set("all", "")):
        assert told(given, change_of(new=owner)) == []

    assert told(given, change_of(new=pod("web"))) == ["a", "b"]
    assert told(given, change_of(old=pod("web"), new=pod("web"))) == []
    assert told(given, change_of(old=pod("web"), new=pod("db"))) == ["c"]
    assert told(given, change_of(old=pod("web"))) == []
    assert given.owners("shop") == [ObjectKey("shop", name) for name in ("a", "b", "c", "all")]


def test_a_controlled_child_requeues_its_owner_only() -> None:
    given = claims()
    told(given, change_of(new=replica_set("a", "web")))
    told(given, change_of(new=replica_set("b", "web")))

    assert told(given, change_of(new=pod("web", "a"))) == ["a"]
    assert told(given, change_of(old=pod("web", "a"), new=pod("web", "b"))) == ["a", "b"]
    assert told(given, change_of(old=pod("web", "a"), new=pod("web"))) == ["a", "b"]


def test_a_deleted_owner_adopts_nothing() -> None:
    given = claims()
    told(given, change_of(new=replica_set("a", "web")))

    told(given, change_of(old=replica_set("a", "web")))

    assert told(given, change_of(new=pod("web"))) == []
    assert given.owners() == []
