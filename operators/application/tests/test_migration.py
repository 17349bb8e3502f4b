"""From v1beta1 in storage to v1alpha1: what a cluster goes through that had an earlier release of this operator."""

from kubewright import Client, Cluster
from kubewright.k8s.apiextensions.v1 import CustomResourceConversion, CustomResourceDefinition
from kubewright.testing import running, until

from application.api.v1alpha1.application import Application
from application.api.v1beta1 import application as v1beta1
from tests.home import Home, is_ready

NAME = "applications.apps.example.io"


async def test_what_an_earlier_release_stored_is_migrated_and_v1beta1_can_go(cluster: Cluster) -> None:
    async with running("application", on=cluster) as operator:
        home = await Home.made(operator)
        await store_as(home.client, "v1beta1")
        nested = v1beta1.ApplicationSpec(container=v1beta1.Container(image="nginx:1.29"), replicas=2)
        await home.client.create(v1beta1.Application.named("web", home.namespace, spec=nested))
        await home.until(is_ready)

        await store_as(home.client, "v1alpha1")
        assert set(await stored_versions(home.client)) == {"v1alpha1", "v1beta1"}
        await migrate(home.client)

        application = await home.client.get(Application, home.key())
        assert application.spec.image == "nginx:1.29"
        await home.edit({"replicas": 1})
        await home.until(lambda seen: is_ready(seen) and seen.status.replicas == 1)


async def store_as(client: Client, wanted: str) -> None:
    """Make another version the one that is stored."""
    crd = await client.get(CustomResourceDefinition, NAME)
    for version in crd.spec.versions:
        version.storage = version.name == wanted
    await client.patch(crd)
    await until(
        client,
        CustomResourceDefinition,
        NAME,
        lambda seen: seen.status is not None and wanted in (seen.status.stored_versions or []),
    )


async def stored_versions(client: Client) -> list[str]:
    crd = await client.get(CustomResourceDefinition, NAME)
    return (crd.status.stored_versions or []) if crd.status is not None else []


async def migrate(client: Client) -> None:
    """Write every object once, say that v1beta1 is stored no more, and stop serving it."""
    for application in await client.list(Application):
        # What is written is written in the version of the storage, even if nothing changed.
        await client.patch_by_name(Application, application.key, {})
    stored = {"status": {"storedVersions": ["v1alpha1"]}}
    await client.patch_by_name(CustomResourceDefinition, NAME, stored, subresource="status")
    crd = await client.get(CustomResourceDefinition, NAME)
    crd.spec.versions = [version for version in crd.spec.versions if version.name == "v1alpha1"]
    crd.spec.conversion = CustomResourceConversion(strategy="None")
    await client.patch(crd)
