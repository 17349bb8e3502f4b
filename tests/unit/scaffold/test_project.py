"""The PROJECT file and what is done to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubewright.errors import ConfigError
from kubewright.scaffold.additions import add_api, add_webhook
from kubewright.scaffold.project import FILE, Project, load_project

EMPTY = Project.new(name="pods-operator", domain="example.io")
PODSET: dict[str, Any] = {"group": "apps", "version": "v1alpha1", "kind": "PodSet"}


def test_a_project_is_read_as_it_was_written(tmp_path: Path) -> None:
    project = add_api(EMPTY, **PODSET, namespaced=False)
    project = add_webhook(project, **PODSET, validation=True, operations=("create", "delete"))
    (tmp_path / FILE).write_text(project.dump())

    assert load_project(tmp_path).dump() == project.dump()


def test_a_folder_without_a_project_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="start one with `kubewright init`"):
        load_project(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("domain: example.io", "domain: [", "is no YAML"),
        ("domain: example.io", "domian: example.io", "unknown field `domian`"),
        ("domain: example.io", "domain: EXAMPLE", "the domain 'EXAMPLE' cannot be used"),
        ("kind: PodSet", "kind: podSet", "the kind 'podSet' cannot be used"),
        ("kind: PodSet", "kind: 3", "Expected `str`, got `int` - at `\\$.resources\\[0\\].kind`"),
        ("python.kubewright.io/v1", "go.kubebuilder.io/v4", "is of another tool or version"),
        ("package: pods_operator", "package: ../etc", "is no Python package"),
    ],
)
def test_a_file_that_was_edited_by_hand_is_refused_with_a_way_out(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    text = add_api(EMPTY, **PODSET).dump()
    assert old in text
    (tmp_path / FILE).write_text(text.replace(old, new))

    with pytest.raises(ConfigError, match=sentence) as raised:
        load_project(tmp_path)
    assert "restore it from version control" in str(raised.value)


def test_a_kind_of_kubernetes_gets_a_controller_alone() -> None:
    entry = add_api(EMPTY, group="apps", version="v1", kind="Deployment").resources[0]

    assert (entry.core, entry.resource, entry.controller, entry.plural) == (True, False, True, "deployments")


def test_a_kind_of_ones_own_may_be_called_like_one_of_kubernetes() -> None:
    project = add_api(EMPTY, group="apps", version="v1", kind="Deployment", resource=True)

    assert project.full_group(project.resources[0]) == "apps.example.io"


def test_the_first_version_is_the_one_that_is_stored() -> None:
    project = add_api(add_api(EMPTY, **PODSET), group="apps", version="v1", kind="PodSet", controller=False)

    assert [(entry.version, entry.storage) for entry in project.resources] == [("v1alpha1", True), ("v1", False)]


def test_a_kind_that_is_written_again_keeps_its_controller_its_scope_and_its_plural() -> None:
    one = add_api(EMPTY, **PODSET, namespaced=False, plural="podsetses")

    for controller in (None, False, True):
        assert add_api(one, **PODSET, overwrite=True, controller=controller) == one


def test_a_kind_gets_its_controller_later_and_keeps_its_scope() -> None:
    bare = add_api(EMPTY, **PODSET, namespaced=False, controller=False)

    (entry,) = add_api(bare, **PODSET, controller=True).resources

    assert (entry.controller, entry.namespaced) == (True, False)


def test_another_version_has_the_scope_and_plural_of_the_first_and_leaves_it_the_controller() -> None:
    one = add_api(EMPTY, **PODSET, namespaced=False, plural="podsetses")

    first, second = add_api(one, group="apps", version="v1", kind="PodSet").resources

    assert (second.namespaced, second.plural) == (False, "podsetses")
    assert (first.controller, second.controller) == (True, False)


def test_a_kind_of_ones_own_in_the_place_of_one_of_kubernetes_has_its_controller() -> None:
    one = add_api(EMPTY, group="batch", version="v1", kind="CronJob")

    (entry,) = add_api(one, group="batch", version="v1", kind="CronJob", resource=True, overwrite=True).resources

    assert (entry.core, entry.resource, entry.controller) == (False, True, True)


@pytest.mark.parametrize(
    "other",
    [
        {"group": "shop", "version": "v1alpha1", "kind": "PodSet"},
        {"group": "shop", "version": "v1", "kind": "PodSet"},
        {"group": "apps", "version": "v1alpha1", "kind": "Podset"},
    ],
    ids=str,
)
def test_kinds_whose_controllers_would_be_one_module_are_refused(other: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="would be one module; give one of the two kinds another name"):
        add_api(add_api(EMPTY, **PODSET), **other)


def test_webhooks_are_added_one_after_the_other() -> None:
    project = add_webhook(add_api(EMPTY, **PODSET), **PODSET, defaulting=True, operations=("create",))
    hooks = add_webhook(project, **PODSET, validation=True).resources[0].webhooks

    assert (hooks.defaulting, hooks.validation, hooks.conversion) == (True, True, False)
    assert (hooks.defaulting_operations, hooks.validation_operations) == (("create",), ("create", "update"))


def test_what_cannot_be_added_is_refused_in_a_sentence() -> None:
    one = add_api(EMPTY, **PODSET)
    with pytest.raises(ConfigError, match="is in the project already; use --force"):
        add_api(one, **PODSET)
    with pytest.raises(ConfigError, match="Kubernetes has no Pod in core/v1alpha1"):
        add_api(EMPTY, group="core", version="v1alpha1", kind="Pod")
    with pytest.raises(ConfigError, match="is no kind of Kubernetes, so it needs a class"):
        add_api(EMPTY, **PODSET, resource=False)
    with pytest.raises(ConfigError, match="without a controller there is nothing to write"):
        add_api(EMPTY, group="core", version="v1", kind="Pod", controller=False)
    with pytest.raises(ConfigError, match="one is enough for all versions"):
        add_api(one, group="apps", version="v1", kind="PodSet", controller=True)
    with pytest.raises(ConfigError, match="has another scope or plural"):
        add_api(one, group="apps", version="v1", kind="PodSet", namespaced=False, controller=False)
    with pytest.raises(ConfigError, match="would be one module"):
        add_api(one, group="shop", version="v1alpha1", kind="PodSet")


def test_webhooks_that_cannot_be_are_refused_in_a_sentence() -> None:
    one = add_api(EMPTY, **PODSET)
    with pytest.raises(ConfigError, match="which webhook"):
        add_webhook(one, **PODSET)
    with pytest.raises(ConfigError, match="make it first with `kubewright create api --group shop"):
        add_webhook(one, group="shop", version="v1", kind="Cart", defaulting=True)
    with pytest.raises(ConfigError, match="has one version, so there is nothing to convert"):
        add_webhook(one, **PODSET, conversion=True)
    with pytest.raises(ConfigError, match="has a defaulting webhook already"):
        add_webhook(add_webhook(one, **PODSET, defaulting=True), **PODSET, defaulting=True)
    with pytest.raises(ConfigError, match="'destroy' is no operation"):
        add_webhook(one, **PODSET, defaulting=True, operations=("destroy",))
