"""Dependencies: one resource waits for another, and conditions say for what.

    kubewright run --embedded examples/dependencies.py

    echo '
    apiVersion: stack.example.io/v1
    kind: Backend
    metadata: {name: shop, namespace: default}
    spec: {image: "shop:1", database: orders}
    ' | kubectl apply -f -

Look at `kubectl get backend shop -o yaml`: it waits, and says for what. Then let there be a database,

    echo '{apiVersion: stack.example.io/v1, kind: Database, metadata: {name: orders, namespace: default}}' |
    kubectl apply -f -

and `kubectl wait --for=condition=Ready backend/shop` returns: order of creation does not matter.

The traps: an error or a short requeue for what is merely not there yet; the change that ends the waiting wakes us.
Believing a condition about an older generation: after a change of the spec, `Ready` is about the past until somebody
has looked. And stopping what runs when a dependency stumbles: it is waited for before the start, and reported later.
"""

from kubewright import Context, Field, ObjectMeta, Resource, Spec, Status, by_index, controller, find_condition
from kubewright.k8s.apps.v1 import Deployment, DeploymentSpec
from kubewright.k8s.core.v1 import Container, PodSpec, PodTemplateSpec
from kubewright.k8s.meta.v1 import LabelSelector


class DatabaseSpec(Spec):
    image: str = "postgres:18"


class Database(Resource[DatabaseSpec, Status], group="stack.example.io", version="v1"):
    """Where things are kept."""


class BackendSpec(Spec):
    image: str
    database: str
    """The Database, in the same namespace, without which it cannot start."""


class Backend(Resource[BackendSpec, Status], group="stack.example.io", version="v1", object_names=Field(max_length=50)):
    """A program that needs a database."""


@controller(Database, owns=[Deployment])
async def reconcile_database(database: Database, ctx: Context) -> None:
    deployment = await ctx.apply(deployment_for(database, database.spec.image))
    ctx.condition("Ready", is_available(deployment))


@controller(
    Backend,
    owns=[Deployment],
    indexes={"database": lambda backend: [backend.spec.database]},
    watches=[(Database, by_index("database"))],
)
async def reconcile_backend(backend: Backend, ctx: Context) -> None:
    database = await ctx.client.find(Database, backend.spec.database)
    missing = what_is_missing(database, backend.spec.database)
    ctx.condition("DatabaseReady", not missing, message=missing)
    if missing:  # what runs already goes on running
        ctx.condition("Ready", False, reason="WaitingForDatabase", message=missing)
        return
    deployment = await ctx.apply(deployment_for(backend, backend.spec.image))
    ctx.condition("Ready", is_available(deployment))


def what_is_missing(database: Database | None, name: str) -> str:
    """Why a database cannot be used now; empty if it can."""
    if database is None:
        return f"there is no Database {name}"
    ready = find_condition(database.status.conditions, "Ready")
    if ready is None or ready.observed_generation != database.metadata.generation:
        return f"Database {name} has not been looked at yet"
    return "" if ready.status == "True" else f"Database {name} is not ready"


def is_available(deployment: Deployment) -> bool:
    status = deployment.status
    return status.observed_generation == deployment.metadata.generation and bool(status.available_replicas)


def deployment_for(owner: Database | Backend, image: str) -> Deployment:
    name = f"{owner.kind.lower()}-{owner.metadata.name}"  # a Database and a Backend may have the same name
    labels = {"stack": name}
    return Deployment.named(
        name,
        spec=DeploymentSpec(
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="main", image=image)])
            ),
        ),
    )
