"""Everything that keeps a cluster tidy, ready for a manager.

    manager = Manager(client, *housekeeping_controllers(client, root_certificate=ca))

For a control plane that has no such controllers, which is the embedded one; on a real one kube-controller-manager does
this work, and two of each would only get in each other's way.
"""

from __future__ import annotations

from typing import Any

from kubewright._base.clock import Clock
from kubewright.client.client import Client
from kubewright.cluster.housekeeping.accounts import root_certificates, service_accounts
from kubewright.cluster.housekeeping.disruption import DisruptionController
from kubewright.cluster.housekeeping.garbage import GarbageCollector
from kubewright.cluster.housekeeping.lost_pods import LostPods
from kubewright.cluster.housekeeping.namespaces import NamespaceController
from kubewright.cluster.housekeeping.protection import claim_protection, volume_protection
from kubewright.cluster.housekeeping.registration import node_registration
from kubewright.cluster.housekeeping.services import service_controllers
from kubewright.controllers.declaration import Declaration
from kubewright.manager.runnables import Runnable

__all__ = ("housekeeping_controllers",)


def housekeeping_controllers(
    client: Client,
    *,
    root_certificate: bytes | None = None,
    quarantine: float = 40.0,
    clock: Clock | None = None,
) -> tuple[Runnable | Declaration[Any], ...]:
    """Garbage, namespaces, service accounts, endpoints, disruption budgets, new nodes, lost pods and used volumes.

    `root_certificate` is the CA, PEM, that is published in every namespace, if given. `quarantine` seconds a node may
    be missing before its pods are removed.
    """
    parts: list[Runnable | Declaration[Any]] = [
        GarbageCollector(client, clock=clock),
        NamespaceController(clock=clock).declaration(),
        service_accounts(),
        *service_controllers(),
        DisruptionController(clock=clock).declaration(),
        node_registration(),
        LostPods(quarantine=quarantine, clock=clock).declaration(),
        claim_protection(),
        volume_protection(),
    ]
    if root_certificate is not None:
        parts.append(root_certificates(root_certificate))
    return tuple(parts)
