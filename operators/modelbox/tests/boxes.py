"""ModelBoxes for tests, and what tests wait for."""

from collections.abc import Callable
from typing import Any, TypeVar

from kubewright import Client, Condition, Conflict, ObjectKey, Quantity, find_condition, testing
from kubewright.api import KubeObject
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Container, PodSpec, ResourceRequirements
from kubewright.k8s.events.v1 import Event
from kubewright.testing import time_limit

from modelbox.api.v1.modelbox import ModelBox, ModelBoxSpec
from modelbox.api.v1.ports import ModelBoxPort

__all__ = (
    "as_condition",
    "box",
    "condition",
    "is_ready",
    "key",
    "main",
    "pod_spec",
    "replaced",
    "settled",
    "tiny",
    "told",
    "until",
)

K = TypeVar("K", bound=KubeObject)


def tiny() -> ResourceRequirements:
    """So little that any number of pods fits on a node."""
    return ResourceRequirements(requests={"cpu": Quantity("1m")}, limits={"cpu": Quantity("10m")})


def box(name: str, namespace: str = "", /, **fields: Any) -> ModelBox:
    """A small, quick ModelBox: pods are available as soon as they run."""
    quick: dict[str, Any] = {
        "image": "nginx:1.27",
        "ports": [ModelBoxPort(port=80)],
        "min_ready_seconds": 0,
        "default_probes": False,
    }
    if "resource_type" not in fields:
        quick["resources"] = tiny()
    return ModelBox.named(name, namespace, spec=ModelBoxSpec(**quick | fields))


async def until(
    client: Client,
    kind: type[K],
    name: ObjectKey,
    holds: Callable[[K], object] = lambda _: True,
    *,
    seconds: float = 60,
) -> K:
    """The object, as soon as it is as expected: patient, for a machine may have much else to do."""
    return await testing.until(client, kind, name, holds, timeout=seconds)


async def settled(client: Client, modelbox: ModelBox) -> ModelBox:
    """The object, once it is Ready as it is wanted now."""
    return await until(client, ModelBox, modelbox.key, is_ready)


async def replaced(client: Client, name: ObjectKey, edit: Callable[[ModelBox], None]) -> ModelBox:
    """The object after a whole update, which is refused as long as the operator writes its status meanwhile."""
    while True:
        modelbox = await client.get(ModelBox, name)
        edit(modelbox)
        try:
            return await client.update(modelbox)
        except Conflict:
            continue


def is_ready(modelbox: ModelBox) -> bool:
    """Whether it is Ready, and the status is about the present spec."""
    return as_condition("Ready", "True")(modelbox)


def as_condition(kind: str, status: str, reason: str | None = None) -> Callable[[ModelBox], bool]:
    """Whether a condition is so, for the present spec."""

    def holds(modelbox: ModelBox) -> bool:
        condition = find_condition(modelbox.status.conditions, kind)
        return (
            modelbox.status.observed_generation == modelbox.metadata.generation
            and condition is not None
            and condition.status == status
            and (reason is None or condition.reason == reason)
        )

    return holds


def main(deployment: Deployment) -> Container:
    """The main container, which is the first."""
    return pod_spec(deployment).containers[0]


def pod_spec(deployment: Deployment) -> PodSpec:
    """What the pods of a Deployment are to be."""
    assert deployment.spec.template.spec is not None
    return deployment.spec.template.spec


def condition(modelbox: ModelBox, kind: str) -> Condition:
    """A condition that is there; an empty Unknown one before the first status."""
    return find_condition(modelbox.status.conditions, kind) or Condition(type=kind, status="Unknown")


async def told(client: Client, namespace: str, reason: str, note: str = "") -> Event:
    """The first event with that reason, and these words, about a ModelBox of the namespace, as soon as it is there."""
    async with time_limit(60), client.watch(Event, namespace=namespace, initial_events=True) as events:
        async for event in events:
            about = event.object.regarding
            said = event.object.reason == reason and note in (event.object.note or "")
            if said and about is not None and about.kind == "ModelBox":
                return event.object
    raise AssertionError("the watch ended")


def key(namespace: str, name: str = "web") -> ObjectKey:
    """Where most tests have their box and its children."""
    return ObjectKey(namespace, name)
