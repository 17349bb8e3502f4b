"""From a change to the objects it concerns."""

from __future__ import annotations

from kubewright import ObjectKey, ObjectMeta
from kubewright.api import KubeObject, OwnerReference
from kubewright.cache.changes import change_of
from kubewright.controllers.mapping import for_each, to_owner, to_self


class Owner(KubeObject, group="example.io", version="v1"):
    """An owner in a namespace."""


class WideOwner(KubeObject, group="example.io", version="v1", scope="Cluster"):
    """An owner without one."""


class Child(KubeObject, version="v1"):
    """What is owned."""


def child(*owners: OwnerReference) -> Child:
    return Child(metadata=ObjectMeta(name="c", namespace="shop", owner_references=list(owners)))


def owner(name: str, *, kind: str = "Owner", group: str = "example.io/v1", controller: bool = True) -> OwnerReference:
    return OwnerReference(api_version=group, kind=kind, name=name, uid=name, controller=controller)


def test_an_object_concerns_itself() -> None:
    assert list(to_self(change_of(new=child()))) == [ObjectKey("shop", "c")]


def test_a_child_that_moves_concerns_both_owners() -> None:
    change = change_of(old=child(owner("a")), new=child(owner("b")))

    assert set(to_owner(Owner)(change)) == {ObjectKey("shop", "a"), ObjectKey("shop", "b")}


def test_only_the_managing_owner_of_that_group_and_kind_counts() -> None:
    change = change_of(
        new=child(
            owner("plain", controller=False),
            owner("foreign", kind="Other"),
            owner("other-group", group="other.io/v1"),
            owner("older-version", group="example.io/v1alpha1"),
        )
    )

    assert set(to_owner(Owner)(change)) == {ObjectKey("shop", "older-version")}
    assert ObjectKey("shop", "plain") in set(to_owner(Owner, controller_only=False)(change))


def test_cluster_scoped_owners_have_no_namespace() -> None:
    change = change_of(new=child(owner("w", kind="WideOwner")))

    assert set(to_owner(WideOwner)(change)) == {ObjectKey("", "w")}


def test_function_of_one_object_sees_old_and_new() -> None:
    mapper = for_each(lambda obj: [ObjectKey("", obj.metadata.labels["to"])])
    old, new = child(), child()
    old.metadata.labels["to"], new.metadata.labels["to"] = "x", "y"

    assert set(mapper(change_of(old=old, new=new))) == {ObjectKey("", "x"), ObjectKey("", "y")}
    assert set(mapper(change_of(old=old))) == {ObjectKey("", "x")}
