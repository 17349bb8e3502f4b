"""A tour with one of the reference operators, ModelBox. Run by `make demo`; ends by itself, in well under a minute.

An embedded cluster, the operator under its own roles, the sample manifest of its documentation; then things are broken
by hand and heal, an image rolls out by percentage, and everything is deleted. On a terminal the objects are a tree that
moves; elsewhere it is printed after each step. `--real` takes the tour on etcd, kube-apiserver and
kube-controller-manager.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import final

import yaml
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text
from rich.tree import Tree

from kubewright import Client, Cluster, Dynamic, ObjectKey, run
from kubewright.api import DynamicObject, KubeObject
from kubewright.errors import ClusterError
from kubewright.k8s.apps.v1 import Deployment, ReplicaSet
from kubewright.k8s.core.v1 import Pod, Service
from kubewright.testing import gone, running, until

PROJECT = Path(__file__).parent / "operators" / "modelbox"
SAMPLE = PROJECT / "config" / "samples" / "model_v1_modelbox.yaml"
MODEL_BOX = Dynamic("model.github.com/v1", "ModelBox", plural="modelboxes")
NAMESPACE = "default"
KINDS: tuple[type[KubeObject], ...] = (MODEL_BOX, Deployment, ReplicaSet, Pod, Service)


@final
class Stage:
    """What is shown: the steps so far with their times, and the objects as a tree that follows its watches."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._console = Console(highlight=False)
        self._seen: dict[str, KubeObject] = {}
        self._steps: list[Text] = []
        self._now = ""
        self._since = time.perf_counter()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Follow every kind for as long as the block lasts."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._follow(kind)) for kind in KINDS]
            try:
                if self._console.is_terminal:
                    with Live(get_renderable=self._picture, console=self._console, refresh_per_second=12):
                        yield
                else:
                    yield
            finally:
                for task in tasks:
                    task.cancel()

    @asynccontextmanager
    async def step(self, title: str) -> AsyncIterator[None]:
        """Say what happens, and afterwards how long it took."""
        self._now, self._since = title, time.perf_counter()
        if not self._console.is_terminal:
            self._console.print(f"[bold]{title}[/bold]")
        yield
        took = time.perf_counter() - self._since
        self._steps.append(Text.assemble(("✓ ", "green"), title, (f"  {took:.2f} s", "dim")))
        self._now = ""
        if not self._console.is_terminal:
            self._console.print(self._tree(), Text(f"  {took:.2f} s", style="dim"))

    async def _follow(self, kind: type[KubeObject]) -> None:
        async with self._client.watch(kind, namespace=NAMESPACE, initial_events=True) as events:
            async for event in events:
                uid = event.object.metadata.uid
                if event.type == "DELETED":
                    self._seen.pop(uid, None)
                else:
                    self._seen[uid] = event.object

    def _picture(self) -> Group:
        now = [Text(f"… {self._now}  {time.perf_counter() - self._since:.1f} s")] if self._now else []
        return Group(*self._steps, *now, self._tree())

    def _tree(self) -> Tree:
        tree = Tree(Text(f"namespace {NAMESPACE}", style="dim"), guide_style="dim")
        ours = [obj for obj in self._seen.values() if obj.metadata.labels.get("component") != "apiserver"]
        for obj in sorted(ours, key=_order):
            if not any(owner.uid in self._seen for owner in obj.metadata.owner_references):
                self._grow(tree, obj)
        return tree

    def _grow(self, tree: Tree, obj: KubeObject) -> None:
        branch = tree.add(_label(obj))
        for child in sorted(self._seen.values(), key=_order):
            if any(owner.uid == obj.metadata.uid for owner in child.metadata.owner_references):
                self._grow(branch, child)


def _order(obj: KubeObject) -> tuple[str, str]:
    return obj.kind, obj.metadata.name


def _label(obj: KubeObject) -> Text:
    terminating = ("  being deleted", "red") if obj.metadata.deletion_timestamp else ""
    return Text.assemble((obj.kind, "bold"), f"/{obj.metadata.name}  ", _state(obj), terminating)


def _state(obj: KubeObject) -> str | tuple[str, str]:
    match obj:
        case Pod():
            ready = any(item.type == "Ready" and item.status == "True" for item in obj.status.conditions or ())
            return (obj.status.phase or "", "green" if ready else "yellow")
        case Deployment() | ReplicaSet():
            image = (obj.spec.template and obj.spec.template.spec and obj.spec.template.spec.containers[0].image) or ""
            return f"{(obj.status and obj.status.ready_replicas) or 0}/{obj.spec.replicas} ready  {image}"
        case Service():
            return f"{obj.spec.type} {obj.spec.cluster_ip}"
        case DynamicObject():
            reasons = {item["type"]: item for item in obj.get("status.conditions") or ()}
            ready = reasons.get("Ready", {"status": "Unknown", "reason": ""})
            return (f"Ready={ready['status']} {ready['reason']}", "green" if ready["status"] == "True" else "yellow")
    return ""


def ready(box: DynamicObject) -> bool:
    """Whether the operator says that the object is as its spec wants it."""
    told = box.get("status.observedGeneration") == box.metadata.generation
    return told and any(
        item["type"] == "Ready" and item["status"] == "True" for item in box.get("status.conditions") or ()
    )


async def tour(client: Client, stage: Stage) -> None:
    """Everything that is shown once the operator runs."""
    manifest = yaml.safe_load(SAMPLE.read_text(encoding="utf-8"))
    key = ObjectKey(NAMESPACE, manifest["metadata"]["name"])
    async with stage.step(f"{SAMPLE.name} applied; its pods run"):
        content = {name: part for name, part in manifest.items() if name not in ("apiVersion", "kind", "metadata")}
        await client.apply(MODEL_BOX.named(key.name, key.namespace, content=content), field_manager="you", force=True)
        await until(client, MODEL_BOX, key, ready)
    async with stage.step("a pod deleted by hand; its ReplicaSet makes another"):
        pod = next(iter(await client.list(Pod, namespace=NAMESPACE)))
        await client.delete(pod)
        await gone(client, Pod, pod.key, uid=pod.metadata.uid)
        await until(client, MODEL_BOX, key, ready)
    for kind in (Service, Deployment):
        async with stage.step(f"the {kind.__name__} deleted by hand; the operator makes another"):
            lost = await client.get(kind, key)
            await client.delete(lost)
            await until(client, kind, key, _another_than(lost))
            await until(client, MODEL_BOX, key, ready)
    share = manifest["spec"]["rollingUpdate"]
    async with stage.step(f"another image; it rolls out by {share}"):
        box = await client.get(MODEL_BOX, key)
        box["spec"]["image"] = f"{box.get('spec.image').partition(':')[0]}:1.29"
        await client.patch(box)
        await until(client, MODEL_BOX, key, ready)
    async with stage.step("the ModelBox deleted; everything it owned goes with it"):
        pods = await client.list(Pod, namespace=NAMESPACE)
        await client.delete(MODEL_BOX, key)
        for kind in (Deployment, Service):
            await gone(client, kind, key)
        for pod in pods:
            await gone(client, Pod, pod.key)


def _another_than(lost: KubeObject) -> Callable[[KubeObject], bool]:
    return lambda found: found.metadata.uid != lost.metadata.uid


async def show(*, real: bool) -> None:
    begun = time.perf_counter()
    cluster = Cluster.real(nodes=2) if real else Cluster.embedded(nodes=2)
    async with cluster:
        print(f"{'A real' if real else 'An embedded'} cluster is ready after {time.perf_counter() - begun:.2f} s.")
        started = time.perf_counter()
        async with running(str(PROJECT), on=cluster) as operator:
            print(f"The operator runs after {time.perf_counter() - started:.2f} s more, as its service account.")
            stage = Stage(operator.client)
            async with stage.open():
                await tour(operator.client, stage)
            print(f"Refused for want of a right: {len(operator.forbidden)}.")
    print(f"That was {time.perf_counter() - begun:.0f} s of Kubewright. Next: README.md, and `make test`.")


def main() -> int:
    try:
        run(show(real="--real" in sys.argv[1:]))
    except ClusterError as error:
        print(f"The tour needs a control plane, and none can be had here: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
