"""Application between its versions: v1alpha1 is the hub, every other version converts to it and from it.

Both hold the same facts in another shape, so nothing is lost either way. Metadata stays by itself.
"""

from kubewright import convert

from application.api.v1alpha1 import application as v1alpha1
from application.api.v1beta1 import application as v1beta1


@convert(v1alpha1.Application, v1beta1.Application)
def from_v1alpha1(old: v1alpha1.Application) -> v1beta1.Application:
    """Image, port and environment move into the container."""
    spec = v1beta1.ApplicationSpec(
        container=v1beta1.Container(image=old.spec.image, port=old.spec.port, env=old.spec.env),
        replicas=old.spec.replicas,
        config_ref=old.spec.config_ref,
        paused=old.spec.paused,
        deletion_policy=old.spec.deletion_policy,
        drain_seconds=old.spec.drain_seconds,
    )
    return v1beta1.Application(spec=spec, status=old.status)


@convert(v1beta1.Application, v1alpha1.Application)
def to_v1alpha1(new: v1beta1.Application) -> v1alpha1.Application:
    """And out of it again."""
    spec = v1alpha1.ApplicationSpec(
        image=new.spec.container.image,
        port=new.spec.container.port,
        env=new.spec.container.env,
        replicas=new.spec.replicas,
        config_ref=new.spec.config_ref,
        paused=new.spec.paused,
        deletion_policy=new.spec.deletion_policy,
        drain_seconds=new.spec.drain_seconds,
    )
    return v1alpha1.Application(spec=spec, status=new.status)
