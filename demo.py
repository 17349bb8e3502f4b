"""A short tour of Kubewright on its embedded control plane. Run by `make demo`; ends by itself.

One thin thread through the layers: a class, its CRD, a client, a watch, a reconcile, a status write. `--real` takes
the tour on etcd, kube-apiserver and kube-controller-manager instead.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from kubewright import (
    Client,
    Cluster,
    Config,
    Context,
    Field,
    Manager,
    ManagerOptions,
    Resource,
    Spec,
    Status,
    connect,
    controller,
    run,
)
from kubewright._base import yaml
from kubewright.api.changes import merge_patch_since_read
from kubewright.cluster.install import install_crds
from kubewright.errors import ClusterError
from kubewright.generate.crds import crd_for
from kubewright.k8s.core.v1 import ConfigMap


class CacheSpec(Spec):
    size: Annotated[int, Field(ge=0, le=10)] = 1
    """How many pods to keep."""
    image: str = "memcached:1.6"


class CacheStatus(Status):
    ready: int = 0
    """How many pods are ready."""


class Cache(
    Resource[CacheSpec, CacheStatus],
    group="cache.example.io",
    version="v1alpha1",
    short_names=("mc",),
    scale=("spec.size", "status.ready"),
    columns={"Ready": ".status.ready", "Age": ".metadata.creationTimestamp"},
):
    """A memcached cluster."""


@controller(Cache, owns=[ConfigMap])
async def reconcile(cache: Cache, ctx: Context) -> None:
    """Bring the world in line with the object: one owned ConfigMap, and a status that says so."""
    say(f"    reconcile {cache.key}, because: {', '.join(str(cause) for cause in ctx.causes)}")
    await ctx.apply(ConfigMap.named(cache.metadata.name, data={"size": str(cache.spec.size)}))
    cache.status.ready = cache.spec.size
    ctx.condition("Ready", True, reason="Configured")


async def settled(client: Client, generation: int) -> None:
    """Returns when the status is about that generation of the object."""
    async with client.watch(Cache, namespace="default", initial_events=True) as events:
        async for event in events:
            if (event.object.status.observed_generation or 0) >= generation:
                return


async def tour_on_a_cluster(*, real: bool) -> None:
    """The part that needs a control plane."""
    cluster = Cluster.real() if real else Cluster.embedded()
    with step("a real control plane: etcd, kube-apiserver, ..." if real else "the embedded control plane"):
        await cluster.start()
    try:
        config = Config.load(kubeconfig=cluster.kubeconfig)
        async with connect(config) as client:
            with step("the CRD of the class installed and established"):
                await install_crds(client, Cache)
            say("  the operator, in this process")
            options = ManagerOptions(health_address="0", metrics_address="0")
            async with Manager(config, reconcile, options=options):
                await tour_of_the_operator(client)
    finally:
        await cluster.stop()


async def tour_of_the_operator(client: Client) -> None:
    with step("an object created; the operator makes its ConfigMap and writes its status"):
        await client.create(Cache.named("web", "default", spec=CacheSpec(size=3)))
        await settled(client, 1)
    with step("one field changed and patched"):
        cache = await client.get(Cache, "web", namespace="default")
        cache.spec.size = 5
        say(f"    the patch on the wire: {merge_patch_since_read(cache)}")
        await client.patch(cache)
        await settled(client, 2)
    with step("the ConfigMap deleted by hand; it comes back"):
        first = await client.get(ConfigMap, "web", namespace="default")
        await client.delete(first)
        async with client.watch(ConfigMap, namespace="default", initial_events=True) as events:
            async for event in events:
                if event.object.metadata.name == "web" and event.object.metadata.uid != first.metadata.uid:
                    break
    with step("the object deleted; what it owned goes with it, by garbage collection"):
        await client.delete(await client.get(Cache, "web", namespace="default"))
        async with client.watch(ConfigMap, namespace="default", initial_events=True) as events:
            async for event in events:
                if event.object.metadata.name == "web" and event.type == "DELETED":
                    break


@contextmanager
def step(title: str) -> Iterator[None]:
    say(f"  {title} ...")
    started = time.perf_counter()
    yield
    say(f"    done in {time.perf_counter() - started:.2f} s")


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    say("A class is the schema. This CRD comes from class Cache in demo.py:\n")
    crd = crd_for(Cache)
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    say(yaml.dump({"name": crd["metadata"]["name"], "spec": spec}))
    try:
        run(tour_on_a_cluster(real="--real" in sys.argv[1:]))
    except ClusterError as error:
        say(f"\nThe rest needs a control plane, and none can be had here: {error}")
    say("\nThat was Kubewright. Next: README.md, and `make test`.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
