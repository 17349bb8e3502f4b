"""Owner references."""

from __future__ import annotations

import pytest

from kubewright import ObjectMeta, controller_of
from kubewright.api import KubeObject, set_controller, set_owner
from kubewright.api.owners import is_controlled_by
from kubewright.errors import ConfigError


class Box(KubeObject, group="example.io", version="v1"):
    """For these tests."""


def box(name: str, *, namespace: str = "shop", uid: str = "") -> Box:
    return Box(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))


def test_controller_is_set_once_and_found() -> None:
    owner, owned = box("a", uid="1"), box("b")

    set_controller(owner, owned)
    set_controller(owner, owned)

    reference = controller_of(owned)
    assert reference is not None
    assert (reference.api_version, reference.kind, reference.name, reference.uid) == ("example.io/v1", "Box", "a", "1")
    assert reference.block_owner_deletion
    assert len(owned.metadata.owner_references) == 1
    assert is_controlled_by(owned, owner)


def test_namesake_with_another_uid_is_another_owner() -> None:
    owned = box("b")
    set_controller(box("a", uid="1"), owned)

    assert not is_controlled_by(owned, box("a", uid="2"))
    assert not is_controlled_by(owned, box("a"))


def test_second_controller_is_refused() -> None:
    owned = box("b")
    set_controller(box("a", uid="1"), owned)

    with pytest.raises(ConfigError, match="is managed by Box a already"):
        set_controller(box("c", uid="2"), owned)


def test_plain_owners_may_be_many() -> None:
    owned = box("b")

    set_owner(box("a", uid="1"), owned)
    set_owner(box("c", uid="2"), owned)

    assert [reference.name for reference in owned.metadata.owner_references] == ["a", "c"]
    assert controller_of(owned) is None


@pytest.mark.parametrize("namespace", ["other", ""])
def test_owner_in_another_namespace_is_refused(namespace: str) -> None:
    with pytest.raises(ConfigError, match="must be in the same namespace"):
        set_owner(box("a", uid="1"), box("b", namespace=namespace))


def test_cluster_scoped_owner_may_own_anything() -> None:
    owned = box("b")

    set_owner(box("a", namespace="", uid="1"), owned)

    assert owned.metadata.owner_references[0].uid == "1"


def test_owner_without_a_uid_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no uid"):
        set_owner(box("a"), box("b"))
