"""Everything that keeps a cluster tidy, ready for a manager.

    manager = Manager(*controller_manager_controllers(client, root_certificate=ca), client=client)

For a control plane that has no such controllers, which is the embedded one; on a real one kube-controller-manager does
this work, and two of each would only get in each other's way.
"""

from __future__ import annotations

from typing import Any

from kubewright._base.certificates import Authority
from kubewright._base.clock import Clock
from kubewright.client.client import Client
from kubewright.cluster.controller_manager.accounts import root_certificates, service_accounts
from kubewright.cluster.controller_manager.certificates.requests import CertificateRequests
from kubewright.cluster.controller_manager.disruption import DisruptionController
from kubewright.cluster.controller_manager.garbage.collector import GarbageCollector
from kubewright.cluster.controller_manager.garbage.namespaces import NamespaceController
from kubewright.cluster.controller_manager.nodes.health import NodeTimes
from kubewright.cluster.controller_manager.nodes.lifecycle import NodeLifecycle
from kubewright.cluster.controller_manager.nodes.pod_gc import PodGarbageCollector
from kubewright.cluster.controller_manager.nodes.taint_eviction import TaintEviction
from kubewright.cluster.controller_manager.policy_types import PolicyTypes
from kubewright.cluster.controller_manager.services.controller import service_controllers
from kubewright.cluster.controller_manager.services.mirrored_slices import mirrored_slices
from kubewright.cluster.controller_manager.services.service_cidrs import ServiceRangeController
from kubewright.cluster.controller_manager.storage.ephemeral_claims import ephemeral_claims
from kubewright.cluster.controller_manager.storage.protection import (
    attributes_protection,
    claim_protection,
    volume_protection,
)
from kubewright.cluster.controller_manager.storage.resource_claims import ResourceClaims
from kubewright.cluster.controller_manager.storage.volume_binding import VolumeBinding
from kubewright.controllers.declaration import Declaration
from kubewright.manager.runnables import Runnable

__all__ = ("controller_manager_controllers",)


def controller_manager_controllers(
    client: Client,
    *,
    root_certificate: bytes | None = None,
    authority: Authority | None = None,
    quarantine: float = 40.0,
    node_times: NodeTimes | None = None,
    clock: Clock | None = None,
) -> tuple[Runnable | Declaration[Any], ...]:
    """Garbage, namespaces, accounts, endpoints, service ranges, disruption budgets, nodes, pods, volumes and claims.

    `root_certificate` is the CA, PEM, that is published in every namespace, if given; `authority`, if given, answers
    certificate requests. `quarantine` seconds a node may be missing before its pods are removed, and `node_times` says
    how long one may be silent before they are driven out.
    """
    parts: list[Runnable | Declaration[Any]] = [
        GarbageCollector(client, clock=clock),
        NamespaceController(clock=clock).declaration(),
        service_accounts(),
        *service_controllers(),
        mirrored_slices(),
        ServiceRangeController(clock=clock).declaration(),
        DisruptionController(clock=clock).declaration(),
        *NodeLifecycle(client, times=node_times, clock=clock).parts(),
        TaintEviction(clock=clock).declaration(),
        PodGarbageCollector(quarantine=quarantine, clock=clock).declaration(),
        PolicyTypes().declaration(),
        claim_protection(),
        volume_protection(),
        attributes_protection(),
        *VolumeBinding().declarations(),
        ephemeral_claims(),
        *ResourceClaims().declarations(),
    ]
    if root_certificate is not None:
        parts.append(root_certificates(root_certificate))
    if authority is not None:
        parts.append(CertificateRequests(authority, clock=clock).declaration())
    return tuple(parts)
