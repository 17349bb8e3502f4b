"""EphemeralVolumeClaim: the kind as a class."""

from datetime import datetime
from typing import Annotated

from kubewright import Duration, Field, Quantity, Resource, Rule, Spec, Status

GROWS = Rule(rule="quantity(self).compareTo(quantity(oldSelf)) >= 0", message="a volume cannot shrink")


class EphemeralVolumeClaimSpec(Spec):
    """What people ask for."""

    size: Annotated[Quantity, Field(rules=[GROWS])]
    """How large the volume is to be. It can grow."""
    storage_class: str | None = None
    """Where it comes from; the cluster's default class if not given."""
    delete_after: Annotated[Duration, Field(format="duration")] | None = None
    """Delete it once no pod has used it for so long, such as 1h30m; never if not given."""


class EphemeralVolumeClaimStatus(Status):
    """What is there; brings observedGeneration and conditions."""

    claim: str = ""
    """The name of the PersistentVolumeClaim."""
    phase: str = ""
    capacity: Quantity | None = None
    """How large the volume is."""
    last_used: datetime | None = None
    """When a pod was last seen to use it, or when it was made."""


class EphemeralVolumeClaim(
    Resource[EphemeralVolumeClaimSpec, EphemeralVolumeClaimStatus],
    group="storage.example.com",
    version="v1",
    short_names=("evc",),
    columns={"Size": ".spec.size", "Capacity": ".status.capacity", "Phase": ".status.phase"},
):
    """A volume that is deleted when nobody uses it."""
