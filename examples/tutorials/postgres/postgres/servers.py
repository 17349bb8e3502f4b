"""The reconciler of Postgres: its password, pods, services and backups; and upgrades, one version after the other."""

from kubewright import Context, controller
from kubewright.k8s.apps.v1 import StatefulSet
from kubewright.k8s.batch.v1 import CronJob, Job
from kubewright.k8s.core.v1 import Secret, Service

from postgres.api import Postgres
from postgres.children import (
    backup_before,
    backups_of,
    keep_password,
    outcome_of,
    services_of,
    stateful_set_of,
    version_of,
)


@controller(Postgres, owns=[StatefulSet, Service, CronJob, Job])
class Servers:
    """Keeps a StatefulSet and what it needs for each Postgres."""

    async def reconcile(self, postgres: Postgres, ctx: Context) -> None:
        """Make the cluster fit, and say in the status what is there."""
        name = postgres.metadata.name
        # Without an owner, it outlives the server: the data that are retained cannot be read without it.
        postgres.status.secret = await keep_password(ctx, f"{name}-password", server=name, owned=False)
        for service in services_of(postgres):
            await ctx.apply(service)
        version = await next_version(postgres, ctx)
        pods = await ctx.apply(stateful_set_of(postgres, version))
        await ctx.apply(backups_of(postgres, version))
        postgres.status.ready_replicas = (pods.status and pods.status.ready_replicas) or 0
        ctx.condition("Ready", postgres.status.ready_replicas == postgres.spec.replicas, reason="PodsReady")
        if is_rolled_out(pods):
            postgres.status.version = version
        if postgres.status.version == postgres.spec.version:
            ctx.condition("Upgraded", True, reason="Running", message=f"all pods run version {version}")
        elif postgres.status.version == version - 1:
            ctx.condition("Upgraded", False, reason="RollingOut", message=f"pods are replaced by version {version}")

    async def finalize(self, postgres: Postgres, ctx: Context) -> None:
        """The children have an owner, and the volumes a policy. What is left is the password."""
        if postgres.spec.deletion_policy == "Delete":
            secret = await ctx.client.find(Secret, f"{postgres.metadata.name}-password")
            if secret is not None:
                await ctx.delete(secret)


async def next_version(postgres: Postgres, ctx: Context) -> int:
    """The version that the pods are to run now: the one they have, or the next one if there is a backup."""
    present = await ctx.client.find(StatefulSet, postgres.metadata.name)
    if present is None:
        return postgres.spec.version
    current = version_of(present)
    if current == postgres.spec.version or not is_rolled_out(present):
        return current
    wanted = backup_before(postgres, current + 1)
    backup = await ctx.client.find(Job, wanted.metadata.name) or await ctx.create(wanted)
    if outcome_of(backup) == "Complete":
        return current + 1
    reason = "BackupFailed" if outcome_of(backup) else "BackingUp"
    ctx.condition("Upgraded", False, reason=reason, message=f"Job {wanted.metadata.name} has to succeed first")
    return current


def is_rolled_out(pods: StatefulSet) -> bool:
    """Whether all pods run what the StatefulSet says now."""
    status, replicas = pods.status, pods.spec.replicas
    return (
        status is not None
        and status.observed_generation == pods.metadata.generation
        and status.current_revision == status.update_revision
        and status.ready_replicas == replicas
    )
