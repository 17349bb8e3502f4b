"""Rollouts: how many pods at a time, and what starts one."""

import pytest
from kubewright import Client, IntOrString, Quantity
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Pod

from boxes import box, key, main, settled, until


@pytest.mark.parametrize(
    ("replicas", "rolling_update", "surge", "unavailable"),
    [(4, "30%", 2, 1), (1, "30%", 1, 0), (10, "100%", 10, 10), (3, 1, 1, 1)],
)
async def test_a_rollout_replaces_so_many_pods_at_a_time(
    client: Client, namespace: str, replicas: int, rolling_update: IntOrString, surge: int, unavailable: int
) -> None:
    """T7, R4: a rollout whose new pods never start stops as far as it may go."""
    wanted = box("web", namespace, replicas=replicas, rolling_update=rolling_update)
    modelbox = await settled(client, await client.create(wanted))

    modelbox.spec.image = "nginx:no-such"
    await client.patch(modelbox)

    old, new = replicas - unavailable, min(replicas, surge + unavailable)

    def is_stuck(deployment: Deployment) -> bool:
        found = deployment.status
        numbers = (found.replicas or 0, found.updated_replicas or 0, found.available_replicas or 0)
        return found.observed_generation == deployment.metadata.generation and numbers == (old + new, new, old)

    stuck = await until(client, Deployment, key(namespace), is_stuck)
    assert stuck.spec.strategy is not None
    assert stuck.spec.strategy.rolling_update is not None
    assert stuck.spec.strategy.rolling_update.max_surge == rolling_update
    assert stuck.spec.strategy.rolling_update.max_unavailable == rolling_update


async def test_a_larger_size_replaces_the_pods(client: Client, namespace: str) -> None:
    """T8."""
    modelbox = await settled(client, await client.create(box("web", namespace, resource_type="small")))
    (before,) = await client.list(Pod, namespace=namespace)
    assert modelbox.status.resource_type == "small"

    modelbox.spec.resource_type = "large"
    modelbox = await settled(client, await client.patch(modelbox))

    resources = main(await client.get(Deployment, key(namespace))).resources
    assert modelbox.status.resource_type == "large"
    assert resources is not None
    assert resources.requests == resources.limits == {"cpu": Quantity("4"), "memory": Quantity("8Gi")}
    running = [pod for pod in await client.list(Pod, namespace=namespace) if pod.metadata.deletion_timestamp is None]
    assert before.metadata.uid not in {pod.metadata.uid for pod in running}
