"""A small operator for tests that run one: a kind, a child, a webhook, and something it has no right to."""

from __future__ import annotations

from kubewright import Context, FieldErrors, Resource, Spec, Status, controller, validate
from kubewright.errors import Forbidden, Terminal
from kubewright.k8s.core.v1 import ConfigMap, Secret


class ParcelSpec(Spec):
    address: str = ""
    curious: bool = False
    """Looks at what is none of its business."""


class ParcelStatus(Status):
    delivered: bool = False


class Parcel(Resource[ParcelSpec, ParcelStatus], group="post.example.io", version="v1"):
    """Something to be delivered."""


# Read by name, so that the generator, which looks for calls in the code, does not see it.
_READ = "get"


@controller(Parcel, owns=[ConfigMap], gauges={"parcel_address_length": lambda parcel: len(parcel.spec.address)})
async def deliver(parcel: Parcel, ctx: Context) -> None:
    if parcel.spec.address == "nowhere":
        raise Terminal("there is no such place")
    await ctx.apply(ConfigMap.named(parcel.metadata.name, data={"address": parcel.spec.address}))
    parcel.status.delivered = True
    if parcel.spec.curious:
        try:
            await getattr(ctx.client.live, _READ)(Secret, "love-letter")
        except Forbidden:
            return


@validate(Parcel)
def check_parcel(parcel: Parcel, errors: FieldErrors) -> None:
    if "\n" in parcel.spec.address:
        errors.add("spec.address", "must be one line")
