"""A typed GET of a Pod from a real kube-apiserver: Kubewright's client against kubernetes_asyncio.

`python -m bench.get VARIANT` is one child, which finds the server through $KUBECONFIG. Budget: at most 0.5x the CPU.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from bench.children import interleaved, report
from bench.pods import pod_tree
from kubewright import Client, Config, Dynamic, connect
from kubewright._base.loop import run
from kubewright.cluster.planes.real import RealCluster

__all__ = ("measure",)

COUNT = 1_500
NAME, NAMESPACE = "subject", "default"
VARIANTS = {"kubewright": "Kubewright", "kubernetes_asyncio": "kubernetes_asyncio"}


async def measure(rounds: int = 3) -> dict[str, dict[str, float]]:
    """CPU microseconds per GET, for each client."""
    async with RealCluster() as cluster:
        async with connect(Config.load(kubeconfig=cluster.kubeconfig)) as client:
            await _create_subject(client)
        results = await asyncio.to_thread(
            interleaved,
            [["bench.get", variant] for variant in VARIANTS],
            rounds=rounds,
            environment={"KUBECONFIG": str(cluster.kubeconfig)},
        )
    return dict(zip(VARIANTS, results, strict=True))


async def _create_subject(client: Client) -> None:
    tree = pod_tree(7)
    spec = {name: value for name, value in tree["spec"].items() if name not in ("priority", "serviceAccount")}
    spec["serviceAccountName"] = "default"
    # The server adds its own token volume.
    spec["volumes"] = spec["volumes"][:1]
    for container in spec["containers"]:
        container["volumeMounts"] = container["volumeMounts"][:1]
    subject = Dynamic("v1", "Pod").named(NAME, NAMESPACE, content={"spec": spec})
    subject.metadata.labels = tree["metadata"]["labels"]
    subject.metadata.annotations = tree["metadata"]["annotations"]
    await client.create(subject)
    status = {"status": tree["status"]}
    await client.patch_by_name(Dynamic("v1", "Pod"), NAME, status, subresource="status", namespace=NAMESPACE)


async def _getter(variant: str, stack: AsyncExitStack) -> Callable[[], Awaitable[object]]:
    if variant == "kubewright":
        from kubewright.k8s.core.v1 import Pod

        client = await stack.enter_async_context(connect())
        return lambda: client.get(Pod, NAME, namespace=NAMESPACE)
    from kubernetes_asyncio import client as api
    from kubernetes_asyncio import config

    await config.load_kube_config()
    core = api.CoreV1Api(await stack.enter_async_context(api.ApiClient()))
    return lambda: core.read_namespaced_pod(NAME, NAMESPACE)


async def _child(variant: str) -> None:
    async with AsyncExitStack() as stack:
        get = await _getter(variant, stack)
        for _ in range(50):
            await get()
        started = time.process_time()
        for _ in range(COUNT):
            await get()
        report(microseconds=(time.process_time() - started) / COUNT * 1e6)


if __name__ == "__main__":
    run(_child(sys.argv[1]))
