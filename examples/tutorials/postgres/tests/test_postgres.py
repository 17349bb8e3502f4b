"""What the operator does about servers and databases, with the rights of its generated roles.

Pods are simulated: Jobs succeed, and no statement is executed.
"""

import os
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from kubewright import Client, Cluster, Quantity, find_condition
from kubewright.api import is_true
from kubewright.errors import Invalid
from kubewright.k8s.apps.v1 import StatefulSet
from kubewright.k8s.batch.v1 import CronJob, Job
from kubewright.k8s.core.v1 import Namespace, PersistentVolumeClaim, Secret, Service, ServiceAccount
from kubewright.testing import gone, running, until

from postgres.api import Database, DatabaseSpec, Postgres, PostgresSpec
from postgres.children import SERVER, image_of, outcome_of, version_of


@pytest.fixture(scope="session")
async def cluster() -> AsyncIterator[Cluster]:
    """An embedded cluster; with REAL=1, etcd and kube-apiserver."""
    async with Cluster.real(nodes=1) if os.environ.get("REAL") else Cluster.embedded() as cluster:
        yield cluster


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    """An administrator's client, while the operator is at work."""
    async with running("postgres", on=cluster) as operator:
        yield operator.client


@pytest.fixture
async def home(client: Client) -> str:
    """A namespace of the test's own."""
    name = f"home-{uuid4().hex[:8]}"
    await client.create(Namespace.named(name))
    await until(client, ServiceAccount, "default", namespace=name)  # without it, no pod is let in
    return name


async def server(client: Client, home: str, spec: PostgresSpec) -> Postgres:
    """A server, as soon as all its pods run."""
    await client.create(Postgres.named("shop", home, spec=spec))
    return await until(client, Postgres, "shop", is_ready, namespace=home, timeout=60)


def is_ready(seen: Postgres | Database) -> bool:
    return is_true(seen.status.conditions, "Ready") and seen.status.observed_generation == seen.metadata.generation


async def password(client: Client, home: str, secret: str) -> str:
    found = await client.get(Secret, secret, namespace=home)
    return (found.data or {})["password"].decode()


# Servers


async def test_a_server_gets_pods_services_a_password_and_backups(client: Client, home: str) -> None:
    seen = await server(client, home, PostgresSpec(version=16, replicas=2))

    assert (seen.status.version, seen.status.ready_replicas) == (16, 2)
    assert len(await password(client, home, seen.status.secret)) == 32
    services = await client.list(Service, namespace=home)
    assert {service.metadata.name for service in services} == {"shop", "shop-read", "shop-pods"}
    backups = await client.get(CronJob, "shop-backup", namespace=home)
    assert backups.spec.schedule == "0 3 * * *"


async def test_a_password_is_made_once(client: Client, home: str) -> None:
    seen = await server(client, home, PostgresSpec())
    first = await password(client, home, seen.status.secret)

    seen.spec.replicas = 2
    await client.patch(seen)
    seen = await until(client, Postgres, "shop", is_ready, namespace=home)

    assert await password(client, home, seen.status.secret) == first


async def test_a_service_that_somebody_deletes_is_made_anew(client: Client, home: str) -> None:
    await server(client, home, PostgresSpec())
    service = await client.get(Service, "shop-read", namespace=home)

    await client.delete(service)

    await until(client, Service, "shop-read", lambda seen: seen.metadata.uid != service.metadata.uid, namespace=home)


async def test_an_upgrade_takes_every_version_and_a_backup_before_each(client: Client, home: str) -> None:
    seen = await server(client, home, PostgresSpec(version=16))

    seen.spec.version = 18
    await client.patch(seen)

    seen = await until(client, Postgres, "shop", lambda it: it.status.version == 18, namespace=home, timeout=60)
    assert is_true(seen.status.conditions, "Upgraded")
    backups = [await client.get(Job, f"shop-before-{version}", namespace=home) for version in (17, 18)]
    for backup, version in zip(backups, (16, 17), strict=True):
        assert backup.spec.template.spec is not None
        assert backup.spec.template.spec.containers[0].image == image_of(version)
    assert [outcome_of(backup) for backup in backups] == ["Complete", "Complete"]
    assert version_of(await client.get(StatefulSet, "shop", namespace=home)) == 18


async def test_what_cannot_be_undone_is_refused(client: Client, home: str) -> None:
    seen = await server(client, home, PostgresSpec(version=17))

    seen.spec.version = 16
    with pytest.raises(Invalid, match="cannot go back"):
        await client.patch(seen)

    seen.spec.version, seen.spec.storage = 17, Quantity("2Gi")
    with pytest.raises(Invalid, match="cannot be changed"):
        await client.patch(seen)


async def test_data_and_password_outlive_a_server_that_retains_them(client: Client, home: str) -> None:
    seen = await server(client, home, PostgresSpec())
    before = await password(client, home, seen.status.secret)

    await client.delete(seen)
    await gone(client, StatefulSet, "shop", namespace=home, timeout=90)
    seen = await server(client, home, PostgresSpec())

    assert await password(client, home, seen.status.secret) == before
    await client.get(PersistentVolumeClaim, "data-shop-0", namespace=home)


async def test_nothing_is_left_of_a_server_that_deletes_its_data(client: Client, home: str) -> None:
    seen = await server(client, home, PostgresSpec(deletion_policy="Delete"))

    await client.delete(seen)

    await gone(client, PersistentVolumeClaim, "data-shop-0", namespace=home, timeout=90)
    await gone(client, Secret, seen.status.secret, namespace=home)


# Databases


async def test_a_database_waits_for_its_server(client: Client, home: str) -> None:
    await client.create(Database.named("orders", home, spec=DatabaseSpec(server="shop")))
    seen = await until(client, Database, "orders", lambda it: it.status.conditions, namespace=home)
    waiting = find_condition(seen.status.conditions, "Ready")
    assert waiting is not None
    assert (waiting.reason, waiting.message) == ("WaitingForServer", "Postgres shop does not exist")

    await server(client, home, PostgresSpec())

    seen = await until(client, Database, "orders", is_ready, namespace=home)
    assert seen.status.host == f"shop.{home}.svc"
    assert await password(client, home, seen.status.secret)


async def test_a_database_is_dropped_only_if_it_says_so(client: Client, home: str) -> None:
    await server(client, home, PostgresSpec())
    await client.create(Database.named("kept", home, spec=DatabaseSpec(server="shop")))
    await client.create(Database.named("dropped", home, spec=DatabaseSpec(server="shop", deletion_policy="Delete")))
    for name in ("kept", "dropped"):
        await until(client, Database, name, is_ready, namespace=home)

    seen: set[str] = set()
    async with client.watch(Job, namespace=home) as events:
        await client.delete(Database, "kept", namespace=home)
        await gone(client, Database, "kept", namespace=home)
        await client.delete(Database, "dropped", namespace=home)
        async for event in events:
            seen.add(event.object.metadata.name)
            if event.object.metadata.name == "dropped-drop" and outcome_of(event.object):
                break

    await gone(client, Database, "dropped", namespace=home)
    assert "kept-drop" not in seen


async def test_a_database_goes_although_its_server_is_gone(client: Client, home: str) -> None:
    made = await server(client, home, PostgresSpec())
    await client.create(Database.named("orders", home, spec=DatabaseSpec(server="shop", deletion_policy="Delete")))
    await until(client, Database, "orders", is_ready, namespace=home)
    await client.delete(made)
    await gone(client, Postgres, "shop", namespace=home)

    await client.delete(Database, "orders", namespace=home)

    await gone(client, Database, "orders", namespace=home)


async def test_everything_is_labelled_with_its_server(client: Client, home: str) -> None:
    await server(client, home, PostgresSpec())

    assert {secret.metadata.labels[SERVER] for secret in await client.list(Secret, namespace=home)} == {"shop"}
