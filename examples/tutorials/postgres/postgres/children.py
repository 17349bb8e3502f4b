"""What belongs to a server: built from its spec alone, so that the same spec gives the same children."""

import secrets

from kubewright import Context, ObjectMeta
from kubewright.errors import AlreadyExists
from kubewright.k8s.apps.v1 import (
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
)
from kubewright.k8s.batch.v1 import CronJob, CronJobSpec, Job, JobSpec, JobTemplateSpec
from kubewright.k8s.core.v1 import (
    Container,
    ContainerPort,
    EnvVar,
    EnvVarSource,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PodSpec,
    PodTemplateSpec,
    Secret,
    SecretKeySelector,
    Service,
    ServicePort,
    ServiceSpec,
    VolumeMount,
    VolumeResourceRequirements,
)
from kubewright.k8s.meta.v1 import LabelSelector

from postgres.api import Database, Postgres

SERVER = "postgres.tutorial.example.com/server"
"""The label of everything that belongs to a server; its value is the server's name."""
PORT = 5432


def image_of(version: int) -> str:
    return f"postgres:{version}"


def version_of(present: StatefulSet) -> int:
    """The version that a StatefulSet asks for."""
    assert present.spec.template.spec is not None
    return int((present.spec.template.spec.containers[0].image or "").rpartition(":")[2])


async def keep_password(ctx: Context, name: str, *, server: str, owned: bool) -> str:
    """Make a Secret with a password, unless there is one; never change it, as the server knows the old one."""
    if await ctx.client.find(Secret, name) is None:
        metadata = ObjectMeta(name=name, labels={SERVER: server})
        try:
            password = secrets.token_urlsafe(24)
            await ctx.create(Secret(metadata=metadata, string_data={"password": password}), owned=owned)
        except AlreadyExists:  # the cache did not know yet
            ctx.log.info("the password is there already")
    return name


def password_from(secret: str, variable: str) -> EnvVar:
    return EnvVar(name=variable, value_from=EnvVarSource(secret_key_ref=SecretKeySelector(name=secret, key="password")))


def services_of(postgres: Postgres) -> list[Service]:
    """One for the primary, one for all who can be read, and one that gives pods their names."""
    name, labels = postgres.metadata.name, {SERVER: postgres.metadata.name}
    ports = [ServicePort(name="postgres", port=PORT)]
    primary = {**labels, "statefulset.kubernetes.io/pod-name": f"{name}-0"}
    return [
        Service.named(name, labels=labels, spec=ServiceSpec(selector=primary, ports=ports)),
        Service.named(f"{name}-read", labels=labels, spec=ServiceSpec(selector=labels, ports=ports)),
        Service.named(f"{name}-pods", labels=labels, spec=ServiceSpec(selector=labels, ports=ports, cluster_ip="None")),
    ]


def stateful_set_of(postgres: Postgres, version: int) -> StatefulSet:
    """The pods. A rolling update goes from the last to the first, so the primary comes last."""
    name, labels, spec = postgres.metadata.name, {SERVER: postgres.metadata.name}, postgres.spec
    container = Container(
        name="postgres",
        image=image_of(version),
        env=[password_from(f"{name}-password", "POSTGRES_PASSWORD"), EnvVar(name="PRIMARY", value=f"{name}-0")],
        ports=[ContainerPort(name="postgres", container_port=PORT)],
        volume_mounts=[VolumeMount(name="data", mount_path="/var/lib/postgresql")],
    )
    claim = PersistentVolumeClaimSpec(
        access_modes=["ReadWriteOnce"], resources=VolumeResourceRequirements(requests={"storage": spec.storage})
    )
    return StatefulSet.named(
        name,
        labels=labels,
        spec=StatefulSetSpec(
            replicas=spec.replicas,
            service_name=f"{name}-pods",
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container])),
            volume_claim_templates=[PersistentVolumeClaim(metadata=ObjectMeta(name="data"), spec=claim)],
            persistent_volume_claim_retention_policy=StatefulSetPersistentVolumeClaimRetentionPolicy(
                when_deleted=spec.deletion_policy, when_scaled="Retain"
            ),
        ),
    )


def backups_of(postgres: Postgres, version: int) -> CronJob:
    """Regular backups."""
    job = JobTemplateSpec(spec=backup_of(postgres, version))
    return CronJob.named(
        f"{postgres.metadata.name}-backup",
        spec=CronJobSpec(schedule=postgres.spec.backup_schedule, concurrency_policy="Forbid", job_template=job),
    )


def backup_before(postgres: Postgres, version: int) -> Job:
    """The backup without which no upgrade to a version begins."""
    return Job.named(f"{postgres.metadata.name}-before-{version}", spec=backup_of(postgres, version - 1))


def backup_of(postgres: Postgres, version: int) -> JobSpec:
    name = postgres.metadata.name
    return command_in(version, ["pg_dumpall", f"--host={name}", "--username=postgres"], secret=f"{name}-password")


def statements_for(database: Database, postgres: Postgres, name: str, *statements: str) -> Job:
    """A Job that has a server execute some SQL, with the password of the database's user as `:'password'`."""
    command = ["psql", f"--host={postgres.metadata.name}", "--username=postgres", '--set=password="$USER_PASSWORD"']
    spec = command_in(
        postgres.status.version,
        [*command, *(f"--command={statement}" for statement in statements)],
        secret=postgres.status.secret,
    )
    assert spec.template.spec is not None
    spec.template.spec.containers[0].env = [
        *(spec.template.spec.containers[0].env or []),
        password_from(f"{database.metadata.name}-user", "USER_PASSWORD"),
    ]
    return Job.named(name, spec=spec)


def command_in(version: int, command: list[str], *, secret: str) -> JobSpec:
    """A Job that runs one of PostgreSQL's programs as its administrator."""
    container = Container(
        name="main", image=image_of(version), command=command, env=[password_from(secret, "PGPASSWORD")]
    )
    return JobSpec(
        backoff_limit=3,
        template=PodTemplateSpec(spec=PodSpec(restart_policy="Never", containers=[container])),
    )


def outcome_of(job: Job) -> str:
    """Complete or Failed; nothing while it runs."""
    states = job.status.conditions or []
    return next((state.type for state in states if state.type in ("Complete", "Failed") and state.status == "True"), "")
