"""owned_children: what is said stands, whoever changes or deletes it; what is no longer wanted goes."""

from __future__ import annotations

from examples.owned_children import Site, SiteSpec
from tests.examples.conftest import ApplyManifest, RunExample

from kubewright import Client, controller_of
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Service, ServicePort, ServiceSpec
from kubewright.testing import gone, until


def is_ready(site: Site) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in site.status.conditions)


async def test_a_site_gets_pods_and_a_service_and_takes_them_along_when_it_goes(
    run_example: RunExample, apply_manifest: ApplyManifest, client: Client
) -> None:
    async with run_example("owned_children"):
        await apply_manifest("owned_children")
        site = await until(client, Site, "shop", is_ready)
        assert site.status.ready == 3
        service = await client.get(Service, "shop")
        owner = controller_of(service)
        assert owner is not None
        assert owner.uid == site.metadata.uid

        await client.delete(site)
        await gone(client, Deployment, "shop")
        await gone(client, Service, "shop")


async def test_what_somebody_changed_or_deleted_by_hand_comes_back(
    run_example: RunExample, client: Client, namespace: str
) -> None:
    async with run_example("owned_children"):
        await client.create(Site.named("web", namespace, spec=SiteSpec(replicas=2)))
        await until(client, Site, "web", is_ready, namespace=namespace)

        deployment = await client.get(Deployment, "web", namespace=namespace)
        deployment.spec.replicas = 9
        deployment.metadata.labels["mine"] = "kept"
        await client.patch(deployment)
        back = await until(client, Deployment, "web", lambda it: it.spec.replicas == 2, namespace=namespace)
        assert back.metadata.labels["mine"] == "kept"

        service = await client.get(Service, "web", namespace=namespace)
        await client.delete(service)
        await until(client, Service, "web", lambda it: it.metadata.uid != service.metadata.uid, namespace=namespace)


async def test_a_service_that_is_no_longer_wanted_goes_but_not_one_of_somebody_else(
    run_example: RunExample, client: Client, namespace: str
) -> None:
    foreign = Service.named("theirs", namespace, spec=ServiceSpec(ports=[ServicePort(port=80)]))
    await client.create(foreign)
    async with run_example("owned_children"):
        await client.create(Site.named("theirs", namespace, spec=SiteSpec(public=False)))
        site = await client.create(Site.named("web", namespace, spec=SiteSpec()))
        await until(client, Service, "web", namespace=namespace)
        site.spec.public = False
        await client.patch(site)
        await gone(client, Service, "web", namespace=namespace)
        await until(client, Site, "theirs", is_ready, namespace=namespace)

    assert await client.find(Service, "theirs", namespace=namespace) is not None
