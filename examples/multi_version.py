"""Multi-version API: rename a field and add one, without breaking anybody who uses the old version.

    kubewright run --embedded examples/multi_version.py

    echo '
    apiVersion: memory.example.io/v1alpha1
    kind: Cache
    metadata: {name: sessions, namespace: default}
    spec: {size: 2}
    ' | kubectl apply -f -

Look at `kubectl get caches.v1.memory.example.io sessions -o yaml` and at the same with `v1alpha1`: one stored object,
two views of it. The API server asks the operator to convert; the controller below knows v1 alone.

The trap: a conversion that loses something. `evict` has no place in v1alpha1; whoever reads the old version and writes
it back would reset it. So on the way down it is put into an annotation, and taken out again on the way up.
`kubewright.testing.assert_round_trip(CacheV1alpha1, Cache)` searches for objects that do not come back as they were.
"""

from typing import Annotated

from kubewright import Context, Field, Resource, Spec, Status, controller, convert
from kubewright.k8s.core.v1 import ConfigMap

EVICT = "memory.example.io/evict"
CHOICES = ("LRU", "LFU", "Never")


class CacheV1alpha1Spec(Spec):
    size: Annotated[int, Field(ge=0, le=10)] = 1


class CacheSpec(Spec):
    replicas: Annotated[int, Field(ge=0, le=10)] = 1
    """Was `size`, which everybody took for bytes."""
    evict: Annotated[str, Field(enum=CHOICES)] = "LRU"
    """Whom to forget first. New in v1."""


class CacheV1alpha1(
    Resource[CacheV1alpha1Spec, Status],
    group="memory.example.io",
    version="v1alpha1",
    kind="Cache",
    storage=False,
    deprecated="memory.example.io/v1alpha1 Cache is deprecated; use v1",
):
    """The first draft."""


class Cache(Resource[CacheSpec, Status], group="memory.example.io", version="v1"):
    """A memcached cluster."""


@convert(CacheV1alpha1, Cache)
def up(old: CacheV1alpha1) -> Cache:
    noted = old.metadata.annotations.pop(EVICT, "LRU")
    # Anybody can write an annotation: whatever it says, the object must stay readable.
    spec = CacheSpec(replicas=old.spec.size, evict=noted if noted in CHOICES else "LRU")
    return Cache(metadata=old.metadata, spec=spec, status=old.status)


@convert(Cache, CacheV1alpha1)
def down(new: Cache) -> CacheV1alpha1:
    new.metadata.annotations[EVICT] = new.spec.evict
    return CacheV1alpha1(metadata=new.metadata, spec=CacheV1alpha1Spec(size=new.spec.replicas), status=new.status)


@controller(Cache, owns=[ConfigMap])
async def reconcile(cache: Cache, ctx: Context) -> None:
    settings = {"replicas": str(cache.spec.replicas), "evict": cache.spec.evict}
    await ctx.apply(ConfigMap.named(cache.metadata.name, data=settings))
    ctx.condition("Ready", True, reason="Configured")
