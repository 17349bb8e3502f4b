"""What defaulter and validator say, without any server: the reconciler uses them like this."""

from datetime import UTC, datetime
from typing import Any

import pytest
from kubewright.api import copy_of
from kubewright.k8s.core.v1 import EnvVar

from application.api.v1alpha1.application import Application, ApplicationSpec
from application.webhooks.v1alpha1.application import default_application, validate_application


def draft(image: str = "nginx:1.29", *, env: list[EnvVar] | None = None, **spec: Any) -> Application:
    return Application.named("web", "shop", spec=ApplicationSpec(image=image, env=env or [], **spec))


def faults(application: Application, old: Application | None = None) -> list[str]:
    return [error.path for error in validate_application.check(application, old=old)]


def test_white_space_around_the_image_is_trimmed_in_a_copy() -> None:
    application = draft("  nginx:1.29\n")

    assert default_application.defaulted(application).spec.image == "nginx:1.29"
    assert application.spec.image == "  nginx:1.29\n"


def test_an_ordinary_application_has_no_faults() -> None:
    assert faults(draft()) == []
    assert faults(draft("registry.example.io:5000/shop/web:V1", deletion_policy="Retain")) == []
    assert faults(draft(drain_seconds=600, env=[EnvVar(name="A"), EnvVar(name="B")])) == []


@pytest.mark.parametrize("image", ["", "nginx 1.29", "nginx\t", "Nginx", "registry.example.io/Shop/web:v1"])
def test_an_image_that_cannot_be_pulled_is_refused(image: str) -> None:
    assert faults(draft(image)) == ["spec.image"]


def test_an_environment_variable_may_be_set_once() -> None:
    twice = draft(env=[EnvVar(name="A", value="1"), EnvVar(name="B"), EnvVar(name="A", value="2")])

    assert faults(twice) == ["spec.env[2].name"]


def test_what_is_retained_is_not_drained() -> None:
    assert faults(draft(deletion_policy="Retain", drain_seconds=1)) == ["spec.drainSeconds"]


def test_all_faults_are_said_together() -> None:
    wrong = draft("Nginx", env=[EnvVar(name="A"), EnvVar(name="A")], deletion_policy="Retain", drain_seconds=1)

    assert faults(wrong) == ["spec.image", "spec.env[1].name", "spec.drainSeconds"]


def test_the_deletion_policy_stands_once_the_application_is_being_deleted() -> None:
    old = draft()
    new = copy_of(old)
    new.spec.deletion_policy = "Retain"

    assert faults(new, old) == []
    for application in (old, new):
        application.metadata.deletion_timestamp = datetime(2030, 1, 1, tzinfo=UTC)
    assert faults(new, old) == ["spec.deletionPolicy"]


def test_no_other_rule_holds_up_a_deletion() -> None:
    wrong = draft("Nginx", deletion_policy="Retain", drain_seconds=1)
    wrong.metadata.deletion_timestamp = datetime(2030, 1, 1, tzinfo=UTC)

    assert faults(wrong, copy_of(wrong)) == []


def test_a_spec_that_is_not_touched_is_not_validated_again() -> None:
    wrong = draft("Nginx", deletion_policy="Retain", drain_seconds=1)
    edited = copy_of(wrong)
    edited.spec.replicas += 1

    assert faults(copy_of(wrong), wrong) == []
    assert faults(edited, wrong) == ["spec.image", "spec.drainSeconds"]
