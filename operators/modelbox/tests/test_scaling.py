"""Who says how many replicas: the ModelBox, through its scale subresource too, or somebody else."""

from kubewright import Client
from kubewright.k8s.apps.v1 import Deployment

from boxes import box, key, settled, until
from modelbox.api.v1.modelbox import ModelBox

EXTERNAL = {"model.github.com/replicas-managed-by": "external"}


async def test_the_scale_subresource_scales_the_deployment(client: Client, namespace: str) -> None:
    """T14."""
    await settled(client, await client.create(box("web", namespace)))

    await client.scales.set(ModelBox, "web", 3, namespace=namespace)

    modelbox = await until(client, ModelBox, key(namespace), lambda found: found.status.available_replicas == 3)
    scale = await client.scales.get(ModelBox, key(namespace))
    assert modelbox.spec.replicas == 3
    assert (scale.spec.replicas, scale.status.replicas) == (3, 3)
    assert scale.status.selector == "model.github.com/modelbox=web"


async def test_a_deployment_scaled_by_hand_is_scaled_back(client: Client, namespace: str) -> None:
    """R3, T5."""
    await settled(client, await client.create(box("web", namespace, replicas=2)))
    before = await client.get(Deployment, key(namespace))

    await client.scales.set(Deployment, "web", 5, namespace=namespace)

    healed = await until(
        client,
        Deployment,
        key(namespace),
        lambda found: found.spec.replicas == 2 and found.metadata.generation >= before.metadata.generation + 2,
    )
    assert healed.metadata.uid == before.metadata.uid


async def test_replicas_are_handed_over_without_a_change_and_then_left_alone(client: Client, namespace: str) -> None:
    """T14, W4, R3: as an autoscaler needs it that scales the Deployment itself."""
    modelbox = await settled(client, await client.create(box("web", namespace, replicas=3)))
    before = await client.get(Deployment, key(namespace))

    modelbox.metadata.annotations = EXTERNAL
    modelbox.spec.image = "nginx:1.28"
    modelbox = await settled(client, await client.patch(modelbox))

    handed_over = await client.get(Deployment, key(namespace))
    assert handed_over.spec.replicas == 3
    assert handed_over.metadata.generation == before.metadata.generation + 1  # the image, and nothing in between

    await client.scales.set(Deployment, "web", 5, namespace=namespace)
    modelbox.spec.image = "nginx:1.29"
    modelbox = await settled(client, await client.patch(modelbox))

    assert (await client.get(Deployment, key(namespace))).spec.replicas == 5
    assert modelbox.status.available_replicas == 5

    modelbox.metadata.annotations = {}
    await client.patch(modelbox)
    await until(client, Deployment, key(namespace), lambda found: found.spec.replicas == 3)
