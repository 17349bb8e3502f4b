"""Waits until a Deployment or a DaemonSet has rolled out, as `kubectl rollout status` does, and says why if not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from kubewright.errors import ClusterError

if TYPE_CHECKING:
    from kubewright.api.names import ObjectKey
    from kubewright.client.client import Client
    from kubewright.k8s.apps.v1 import DaemonSet, Deployment

__all__ = ("wait_for_rollout",)


async def wait_for_rollout(
    client: Client, what: Literal["DaemonSet", "Deployment"], key: ObjectKey, *, timeout: float
) -> None:
    """Returns when every replica is updated and available; a ClusterError says why not."""
    from kubewright.k8s.apps.v1 import DaemonSet, Deployment

    kind: type[Any] = {"DaemonSet": DaemonSet, "Deployment": Deployment}[what]
    status = "nothing is known of its pods"
    try:
        async with (
            asyncio.timeout(timeout),
            client.watch(
                kind, namespace=key.namespace, fields={"metadata.name": key.name}, initial_events=True
            ) as events,
        ):
            async for event in events:
                if event.type == "DELETED":
                    raise ClusterError(f"the {what} {key} was deleted during the rollout")
                found = event.object
                if (found.status.observed_generation or 0) < (found.metadata.generation or 0):
                    continue
                if isinstance(found, DaemonSet):
                    if _on_every_node(found):
                        return
                    status = _daemon_set_status(found)
                    continue
                if _complete(found):
                    return
                status = _rollout_status(found) or status
                if _deadline_exceeded(found):
                    break
    except TimeoutError:
        pass
    raise ClusterError(
        f"{key.name} is not available after {timeout:g} s: {status}; see kubectl --namespace {key.namespace} describe "
        "pods"
    )


def _on_every_node(daemon_set: DaemonSet) -> bool:
    wanted, updated, available = _pods(daemon_set)
    return wanted == updated == available


def _daemon_set_status(daemon_set: DaemonSet) -> str:
    wanted, updated, available = _pods(daemon_set)
    return f"of {wanted} pods, one for each node, {updated} are updated and {available} available"


def _pods(daemon_set: DaemonSet) -> tuple[int, int, int]:
    """How many are wanted, updated and available."""
    status = daemon_set.status
    if status is None:
        return 0, 0, 0
    return (
        status.desired_number_scheduled or 0,
        status.updated_number_scheduled or 0,
        status.number_available or 0,
    )


def _complete(deployment: Deployment) -> bool:
    status, wanted = deployment.status, deployment.spec.replicas
    updated = status.updated_replicas or 0
    # The condition Available is true while old replicas run, even if the new ones cannot start.
    return updated >= (1 if wanted is None else wanted) and updated == (status.replicas or 0) == _available(deployment)


def _available(deployment: Deployment) -> int:
    return deployment.status.available_replicas or 0


def _rollout_status(deployment: Deployment) -> str:
    found = {condition.type: condition for condition in deployment.status.conditions or ()}
    for name in ("ReplicaFailure", "Available", "Progressing"):
        condition = found.get(name)
        if condition is not None and condition.message and (name != "Available" or condition.status != "True"):
            return condition.message
    return ""


def _deadline_exceeded(deployment: Deployment) -> bool:
    return any(
        condition.type == "Progressing" and condition.reason == "ProgressDeadlineExceeded"
        for condition in deployment.status.conditions or ()
    )
