"""Which changes wake the operator."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from kubewright.api import copy_of
from kubewright.cache import change_of
from kubewright.k8s.core.v1 import ConfigMap

from application.api.v1alpha1.application import Application, ApplicationSpec
from application.predicates import data_changed, desired_state_changed


def touch(application: Application) -> None:
    application.status.replicas = 7
    application.metadata.labels["new"] = "label"
    application.metadata.annotations["new"] = "annotation"
    application.metadata.finalizers.append("someone.example.io/else")


def edit(application: Application) -> None:
    application.metadata.generation = 2


def doom(application: Application) -> None:
    application.metadata.deletion_timestamp = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("change", "wakes"), [(touch, False), (edit, True), (doom, True)])
def test_an_application_is_looked_at_when_its_spec_changes_or_its_end_comes(
    change: Callable[[Application], None], wakes: bool
) -> None:
    old = Application.named("web", "shop", spec=ApplicationSpec(image="nginx"))
    old.metadata.generation = 1
    new = copy_of(old)
    change(new)

    assert desired_state_changed(change_of(old=old, new=new)) is wakes
    assert desired_state_changed(change_of(old=old, new=old, resync=True))
    assert desired_state_changed(change_of(new=new))
    assert desired_state_changed(change_of(old=old))


def test_a_config_map_counts_for_its_data_alone() -> None:
    old = ConfigMap.named("settings", "shop", data={"A": "1"})
    labelled = copy_of(old)
    labelled.metadata.labels["new"] = "label"
    other = ConfigMap.named("settings", "shop", data={"A": "2"})
    binary = ConfigMap.named("settings", "shop", data={"A": "1"}, binary_data={"B": b"\xff"})

    assert not data_changed(change_of(old=old, new=labelled))
    assert data_changed(change_of(old=old, new=other))
    assert data_changed(change_of(old=old, new=binary))
    assert data_changed(change_of(new=old))
    assert data_changed(change_of(old=old))
