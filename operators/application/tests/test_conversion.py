"""An Application in one version and in the other: nothing is lost either way."""

from kubewright.k8s.core.v1 import EnvVar
from kubewright.testing import assert_round_trip

from application.api.v1alpha1 import application as v1alpha1
from application.api.v1beta1 import application as v1beta1
from application.webhooks.conversion import from_v1alpha1, to_v1alpha1

FLAT = v1alpha1.Application.named(
    "web",
    "shop",
    spec=v1alpha1.ApplicationSpec(
        image="nginx:1.29",
        replicas=3,
        port=8080,
        env=[EnvVar(name="A", value="1")],
        config_ref=v1alpha1.ConfigReference(name="settings"),
        paused=True,
        drain_seconds=30,
    ),
    status=v1alpha1.ApplicationStatus(replicas=3, ready_replicas=2, observed_generation=7, config_hash="abc"),
)


def test_image_port_and_environment_move_into_the_container() -> None:
    grouped = from_v1alpha1(FLAT)

    assert grouped.spec.container == v1beta1.Container(image="nginx:1.29", port=8080, env=[EnvVar(name="A", value="1")])
    assert (grouped.spec.replicas, grouped.spec.paused, grouped.spec.drain_seconds) == (3, True, 30)
    assert grouped.status == FLAT.status


def test_and_out_of_it_again() -> None:
    assert to_v1alpha1(from_v1alpha1(FLAT)).spec == FLAT.spec


def test_every_application_survives_the_way_there_and_back() -> None:
    assert_round_trip(v1alpha1.Application, v1beta1.Application, examples=[FLAT, from_v1alpha1(FLAT)])
