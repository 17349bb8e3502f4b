"""What holds where a ModelBox says nothing."""

from hypothesis import given
from kubewright import Quantity
from kubewright.k8s.core.v1 import ResourceRequirements

from examples import modelboxes
from modelbox.api.v1.modelbox import ModelBox, ModelBoxSpec
from modelbox.api.v1.ports import ModelBoxPort
from modelbox.children.deployment import deployment_for
from modelbox.children.service import service_for
from modelbox.webhooks.v1.modelbox import default_modelbox


@given(modelboxes)
def test_filling_in_defaults_twice_changes_nothing(modelbox: ModelBox) -> None:
    """1.5."""
    once = default_modelbox.defaulted(modelbox)

    assert default_modelbox.defaulted(once) == once


@given(modelboxes)
def test_children_are_the_same_with_and_without_the_webhook(modelbox: ModelBox) -> None:
    """T15, C7."""
    defaulted = default_modelbox.defaulted(modelbox)

    assert deployment_for(defaulted) == deployment_for(modelbox)
    assert service_for(defaulted) == service_for(modelbox)


def test_a_node_port_makes_the_service_a_node_port() -> None:
    spec = ModelBoxSpec(image="nginx", ports=[ModelBoxPort(port=80), ModelBoxPort(port=81, node_port=30000)])

    defaulted = default_modelbox.defaulted(ModelBox.named("web", spec=spec))

    assert defaulted.spec.service_type == "NodePort"
    assert [port.target_port for port in defaulted.spec.ports] == [80, 81]


def test_resources_make_the_size_custom_and_empty_ones_do_not() -> None:
    ports = [ModelBoxPort(port=80)]
    given = ModelBoxSpec(image="nginx", ports=ports, resources=ResourceRequirements(limits={"cpu": Quantity("1")}))
    empty = ModelBoxSpec(image="nginx", ports=ports, resources=ResourceRequirements())

    assert default_modelbox.defaulted(ModelBox.named("web", spec=given)).spec.resource_type == "custom"
    assert default_modelbox.defaulted(ModelBox.named("web", spec=empty)).spec.resource_type == "small"


def test_what_is_said_is_kept() -> None:
    spec = ModelBoxSpec(
        image="nginx",
        ports=[ModelBoxPort(port=80, target_port="http", node_port=30000)],
        name="server",
        service_type="LoadBalancer",
        resource_type="medium",
    )
    modelbox = ModelBox.named("web", spec=spec)

    assert default_modelbox.defaulted(modelbox) == modelbox


def test_a_name_that_is_not_there_yet_is_not_filled_in() -> None:
    spec = ModelBoxSpec(image="nginx", ports=[ModelBoxPort(port=80)])

    assert default_modelbox.defaulted(ModelBox.named("", spec=spec)).spec.name is None
