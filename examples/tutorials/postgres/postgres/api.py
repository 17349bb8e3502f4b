"""Postgres, a server, and Database, what is in one."""

from typing import Annotated, Literal

from kubewright import Field, Quantity, Resource, Rule, Spec, Status

FORWARD = Rule(rule="self >= oldSelf", message="a server cannot go back to an older version")
SAME = Rule(rule="quantity(self).compareTo(quantity(oldSelf)) == 0", message="the size of volumes cannot be changed")
DeletionPolicy = Literal["Retain", "Delete"]
NAMES = Field(max_length=40)
"""Leaves room for the suffixes of children, and of their pods."""


class PostgresSpec(Spec):
    """The server that people ask for."""

    version: Annotated[int, Field(ge=14, le=18, rules=[FORWARD])] = 18
    """The major version. The operator goes there one version at a time, each after a backup."""
    replicas: Annotated[int, Field(ge=1, le=5)] = 1
    """How many pods; the first is the primary, the others follow it."""
    storage: Annotated[Quantity, Field(rules=[SAME])] = Quantity("1Gi")
    """How large the volume of each pod is."""
    backup_schedule: Annotated[str, Field(min_length=9)] = "0 3 * * *"
    """When backups are made, in cron's notation."""
    deletion_policy: DeletionPolicy = "Retain"
    """What becomes of the data and the password when the object is deleted."""


class PostgresStatus(Status):
    """The server that is there; brings observedGeneration and conditions."""

    version: int = 0
    """The version that all pods run; 0 until they do."""
    ready_replicas: int = 0
    secret: str = ""
    """Where the password of the user postgres is."""


class Postgres(
    Resource[PostgresSpec, PostgresStatus],
    group="postgres.tutorial.example.com",
    version="v1",
    plural="postgreses",
    short_names=("pg",),
    scale=("spec.replicas", "status.readyReplicas"),
    columns={"Version": ".status.version", "Ready": ".status.readyReplicas"},
    object_names=NAMES,
):
    """A PostgreSQL server."""


class DatabaseSpec(Spec):
    """The database that people ask for. Its name, and that of its user, is the name of the object."""

    server: Annotated[str, Field(min_length=1, immutable=True)]
    """The Postgres in the same namespace that it is in."""
    deletion_policy: DeletionPolicy = "Retain"
    """Whether the database is dropped when the object is deleted."""


class DatabaseStatus(Status):
    """The database that is there; brings observedGeneration and conditions."""

    host: str = ""
    secret: str = ""
    """Where the password of its user is."""


class Database(
    Resource[DatabaseSpec, DatabaseStatus],
    group="postgres.tutorial.example.com",
    version="v1",
    columns={"Server": ".spec.server", "Ready": '.status.conditions[?(@.type=="Ready")].status'},
    object_names=NAMES,
):
    """A database in a Postgres, and the user who owns it."""
