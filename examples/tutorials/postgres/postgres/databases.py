"""The reconciler of Database: a user with a password, and a Job that has the server make both."""

from kubewright import Context, Result, by_index, controller, find_condition
from kubewright.k8s.batch.v1 import Job

from postgres.api import Database, Postgres
from postgres.children import keep_password, outcome_of, statements_for


@controller(
    Database,
    owns=[Job],
    indexes={"server": lambda database: [database.spec.server]},
    watches=[(Postgres, by_index("server"))],
)
class Databases:
    """Keeps a database for each Database."""

    async def reconcile(self, database: Database, ctx: Context) -> None:
        """Wait for the server, then have it make the database, once."""
        name = database.metadata.name
        database.status.secret = await keep_password(ctx, f"{name}-user", server=database.spec.server, owned=True)
        server = await ctx.client.find(Postgres, database.spec.server)
        if server is None or not serves(server):
            message = f"Postgres {database.spec.server} " + ("does not exist" if server is None else "is not ready")
            ctx.condition("Ready", False, reason="WaitingForServer", message=message)
            return
        database.status.host = f"{server.metadata.name}.{server.metadata.namespace}.svc"
        job = await keep_job(
            ctx,
            statements_for(
                database,
                server,
                f"{name}-create-{server.metadata.uid[:8]}",  # another server of that name knows nothing of it
                f"CREATE USER \"{name}\" PASSWORD :'password'",
                f'CREATE DATABASE "{name}" OWNER "{name}"',
            ),
        )
        ctx.condition("Ready", outcome_of(job) == "Complete", reason=outcome_of(job) or "Creating")

    async def finalize(self, database: Database, ctx: Context) -> Result | None:
        """Drop it, if it is to be, and if there is a server that could."""
        server = await ctx.client.find(Postgres, database.spec.server)
        if database.spec.deletion_policy == "Retain" or server is None or server.metadata.deletion_timestamp:
            return None
        name = database.metadata.name
        statements = (f'DROP DATABASE IF EXISTS "{name}"', f'DROP USER IF EXISTS "{name}"')
        job = await keep_job(ctx, statements_for(database, server, f"{name}-drop", *statements))
        return None if outcome_of(job) == "Complete" else Result(requeue_after=30)  # its end calls this, too


def serves(server: Postgres) -> bool:
    """Whether a server can be asked: it has a version, and its pods are ready."""
    ready = find_condition(server.status.conditions, "Ready")
    return bool(server.status.version) and ready is not None and ready.status == "True"


async def keep_job(ctx: Context, wanted: Job) -> Job:
    """The Job as it is; made if there is none. A Job cannot be changed, so it is not applied."""
    return await ctx.client.find(Job, wanted.metadata.name) or await ctx.create(wanted)
