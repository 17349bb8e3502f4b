"""dependencies: whoever comes first waits, and says for what."""

from __future__ import annotations

from examples.dependencies import Backend, BackendSpec, Database, DatabaseSpec, what_is_missing
from tests.examples.conftest import ApplyManifest, RunExample

from kubewright import Client, Condition, ObjectMeta, Status, find_condition
from kubewright.k8s.apps.v1 import Deployment
from kubewright.testing import gone, until


def state(obj: Backend | Database, kind: str) -> tuple[str, str]:
    condition = find_condition(obj.status.conditions, kind)
    return (condition.status, condition.reason or "") if condition is not None else ("", "")


async def test_a_backend_waits_for_its_database_and_starts_when_it_is_ready(
    run_example: RunExample, apply_manifest: ApplyManifest, client: Client
) -> None:
    async with run_example("dependencies"):
        await apply_manifest("dependencies")
        waiting = await until(client, Backend, "shop", lambda it: state(it, "Ready")[0] == "False")
        assert state(waiting, "Ready") == ("False", "WaitingForDatabase")
        assert await client.find(Deployment, "backend-shop") is None

        await client.create(Database.named("orders"))
        ready = await until(client, Backend, "shop", lambda it: state(it, "Ready")[0] == "True")
        assert state(ready, "DatabaseReady")[0] == "True"


async def test_what_runs_goes_on_when_its_database_is_gone(
    run_example: RunExample, client: Client, namespace: str
) -> None:
    async with run_example("dependencies"):
        database = await client.create(Database.named("same", namespace))
        spec = BackendSpec(image="shop:1", database="same")
        await client.create(Backend.named("same", namespace, spec=spec))
        await until(client, Backend, "same", lambda it: state(it, "Ready")[0] == "True", namespace=namespace)

        await client.delete(database)
        await gone(client, Deployment, "database-same", namespace=namespace)
        told = await until(
            client, Backend, "same", lambda it: state(it, "DatabaseReady")[0] == "False", namespace=namespace
        )
        assert state(told, "Ready")[0] == "False"
        assert await client.find(Deployment, "backend-same", namespace=namespace) is not None


def test_a_condition_about_an_older_generation_is_not_believed() -> None:
    ready = Condition(type="Ready", status="True", observed_generation=1)
    database = Database(
        metadata=ObjectMeta(name="orders", generation=1), spec=DatabaseSpec(), status=Status(conditions=[ready])
    )
    assert what_is_missing(database, "orders") == ""
    database.metadata.generation = 2
    assert what_is_missing(database, "orders") == "Database orders has not been looked at yet"
