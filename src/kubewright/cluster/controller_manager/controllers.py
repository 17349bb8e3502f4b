"""The controllers of kube-controller-manager other than the workload controllers, as one list for a manager.

    manager = Manager(client, *controller_manager_controllers(client, root_certificate=ca))

Only for a control plane without a kube-controller-manager, such as the embedded one: two instances of a controller
would undo each other's work. Called by `planes.controllers`.
"""

from __future__ import annotations

from typing import Any

from kubewright._base.certificates import Authority
from kubewright._base.clock import Clock
from kubewright.client.client import Client
from kubewright.cluster.controller_manager.certificates.csr_controller import CertificateSigningRequestController
from kubewright.cluster.controller_manager.disruption import DisruptionController
from kubewright.cluster.controller_manager.garbage.collector import GarbageCollector
from kubewright.cluster.controller_manager.garbage.namespaces import NamespaceController
from kubewright.cluster.controller_manager.nodes.health import NodeMonitorOptions
from kubewright.cluster.controller_manager.nodes.lifecycle import NodeLifecycleController
from kubewright.cluster.controller_manager.nodes.pod_gc import PodGCController
from kubewright.cluster.controller_manager.nodes.taint_eviction import TaintEvictionController
from kubewright.cluster.controller_manager.service_accounts import root_ca_cert_publisher, service_account_controller
from kubewright.cluster.controller_manager.services.endpoint_controllers import endpoint_controllers
from kubewright.cluster.controller_manager.services.endpoint_slice_mirroring import endpoint_slice_mirroring_controller
from kubewright.cluster.controller_manager.services.service_cidrs import ServiceCIDRController
from kubewright.cluster.controller_manager.storage.ephemeral_volumes import ephemeral_volume_controller
from kubewright.cluster.controller_manager.storage.protection import (
    pv_protection_controller,
    pvc_protection_controller,
    vac_protection_controller,
)
from kubewright.cluster.controller_manager.storage.resource_claims import ResourceClaimController
from kubewright.cluster.controller_manager.storage.volume_binding import PersistentVolumeController
from kubewright.cluster.controller_manager.validating_admission_policy_status import (
    ValidatingAdmissionPolicyStatusController,
)
from kubewright.controllers.declaration import Declaration
from kubewright.manager.runnables import Runnable

__all__ = ("controller_manager_controllers",)


def controller_manager_controllers(
    client: Client,
    *,
    root_certificate: bytes | None = None,
    authority: Authority | None = None,
    quarantine: float = 40.0,
    node_monitor: NodeMonitorOptions | None = None,
    clock: Clock | None = None,
) -> tuple[Runnable | Declaration[Any], ...]:
    """All controllers but those of `workloads`.

    RootCACertPublisher runs if `root_certificate`, the CA in PEM, is given, and the CertificateSigningRequest
    controller if `authority` is. `quarantine` is how many seconds a node may be missing before PodGC deletes its pods,
    and `node_monitor` has the grace periods of node heartbeats.
    """
    controllers: list[Runnable | Declaration[Any]] = [
        GarbageCollector(client, clock=clock),
        NamespaceController(clock=clock).declaration(),
        service_account_controller(),
        *endpoint_controllers(),
        endpoint_slice_mirroring_controller(),
        ServiceCIDRController(clock=clock).declaration(),
        DisruptionController(clock=clock).declaration(),
        *NodeLifecycleController(client, options=node_monitor, clock=clock).controllers(),
        TaintEvictionController(clock=clock).declaration(),
        PodGCController(quarantine=quarantine, clock=clock).declaration(),
        ValidatingAdmissionPolicyStatusController().declaration(),
        pvc_protection_controller(),
        pv_protection_controller(),
        vac_protection_controller(),
        *PersistentVolumeController().declarations(),
        ephemeral_volume_controller(),
        *ResourceClaimController().declarations(),
    ]
    if root_certificate is not None:
        controllers.append(root_ca_cert_publisher(root_certificate))
    if authority is not None:
        controllers.append(CertificateSigningRequestController(authority, clock=clock).declaration())
    return tuple(controllers)
