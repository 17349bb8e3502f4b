"""What happens when a ModelBox goes.

On the real control plane the garbage collector needs up to half a minute until it knows a kind that has just been
installed; so these tests are patient.
"""

from kubewright import Client, controller_of
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Service
from kubewright.testing import gone

from boxes import box, is_ready, key, main, settled, until
from modelbox.api.v1.modelbox import ModelBox

_PATIENCE = 90.0


async def test_children_go_with_their_modelbox_which_never_had_a_finalizer(client: Client, namespace: str) -> None:
    """T12."""
    created = await client.create(box("web", namespace))
    ready = await settled(client, created)

    await client.delete(ready)

    assert ready.metadata.finalizers == []
    await gone(client, ModelBox, key(namespace))
    await gone(client, Deployment, key(namespace), timeout=_PATIENCE)
    await gone(client, Service, key(namespace), timeout=_PATIENCE)


async def test_a_modelbox_that_is_made_again_at_once_gets_children_of_its_own(client: Client, namespace: str) -> None:
    """1.8: deleted and re-created within a second."""
    first = await client.create(box("web", namespace))
    await settled(client, first)

    await client.delete(first)
    second = await client.create(box("web", namespace))

    await until(client, ModelBox, key(namespace), is_ready, seconds=_PATIENCE)
    for kind in (Deployment, Service):
        owner = controller_of(await client.get(kind, key(namespace)))
        assert owner is not None
        assert owner.uid == second.metadata.uid


async def test_orphaned_children_are_adopted_by_a_new_modelbox(client: Client, namespace: str) -> None:
    """W2: a Deployment that is there already is no reason to fail for ever."""
    first = await client.create(box("web", namespace))
    await settled(client, first)
    deployment = await client.get(Deployment, key(namespace))
    await client.delete(first, propagation="Orphan")
    await gone(client, ModelBox, key(namespace), timeout=_PATIENCE)
    await until(client, Deployment, key(namespace), lambda found: controller_of(found) is None, seconds=_PATIENCE)
    await until(client, Service, key(namespace), lambda found: controller_of(found) is None, seconds=_PATIENCE)

    second = await client.create(box("web", namespace, image="nginx:1.28"))

    await settled(client, second)
    adopted = await client.get(Deployment, key(namespace))
    assert adopted.metadata.uid == deployment.metadata.uid
    assert controller_of(adopted) == controller_of(await client.get(Service, key(namespace)))
    assert main(adopted).image == "nginx:1.28"
