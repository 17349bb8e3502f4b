"""When a drain is over."""

from datetime import UTC, datetime, timedelta

import pytest
from kubewright import ObjectMeta
from kubewright.k8s.apps.v1 import Deployment, DeploymentSpec, DeploymentStatus
from kubewright.k8s.core.v1 import PodTemplateSpec
from kubewright.k8s.meta.v1 import LabelSelector

from application.api.v1alpha1.application import Application, ApplicationSpec
from application.drain import deadline_of, is_empty
from application.names import DRAIN_UNTIL

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
SPEC = DeploymentSpec(replicas=0, selector=LabelSelector(), template=PodTemplateSpec())


def terminating(drain_seconds: int) -> Application:
    return Application(
        metadata=ObjectMeta(name="web", deletion_timestamp=NOON),
        spec=ApplicationSpec(image="nginx", drain_seconds=drain_seconds),
    )


def annotated(text: str) -> Deployment:
    return Deployment(metadata=ObjectMeta(annotations={DRAIN_UNTIL: text}), spec=SPEC)


def test_the_time_counts_from_the_deletion() -> None:
    assert deadline_of(terminating(30), Deployment(spec=SPEC)) == NOON + timedelta(seconds=30)
    assert deadline_of(terminating(0), Deployment(spec=SPEC)) is None


@pytest.mark.parametrize("edited", [0, 600])
def test_what_was_written_when_the_drain_began_wins_over_a_later_edit(edited: int) -> None:
    assert deadline_of(terminating(edited), annotated("2030-01-01T12:00:30+00:00")) == NOON + timedelta(seconds=30)


@pytest.mark.parametrize("text", ["2029-12-31T12:00:30+00:00", "2030-01-01T12:00:30", "soon", ""])
def test_what_an_earlier_drain_or_somebody_else_wrote_does_not_count(text: str) -> None:
    assert deadline_of(terminating(30), annotated(text)) == NOON + timedelta(seconds=30)


def test_a_deployment_is_empty_when_its_controller_says_so_about_its_present_spec() -> None:
    metadata = ObjectMeta(generation=2)

    assert is_empty(Deployment(metadata=metadata, spec=SPEC, status=DeploymentStatus(observed_generation=2)))
    assert not is_empty(Deployment(metadata=metadata, spec=SPEC, status=DeploymentStatus(observed_generation=1)))
    assert not is_empty(
        Deployment(metadata=metadata, spec=SPEC, status=DeploymentStatus(observed_generation=2, replicas=1))
    )
