"""The admission chain: every plugin a write passes, from first to last.

The order is kube-apiserver's (`AllOrderedPlugins` in pkg/kubeapiserver/options/plugins.go), as far as the plugins exist
here: those that are switched on by default, and NodeRestriction, which every cluster switches on. Three checks that
kube-apiserver makes outside of admission are plugins here, at a position with the same effect. `server` makes the chain
once; nobody adds to it.
"""

from __future__ import annotations

from kubewright._base.clock import Clock
from kubewright.apiserver.admission.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from kubewright.apiserver.admission.crd_termination import ForbidCreateInTerminatingCrd, TerminatingCrds
from kubewright.apiserver.admission.default_classes import DefaultIngressClass, DefaultStorageClass
from kubewright.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from kubewright.apiserver.admission.device_admin_access import DeviceAdminAccess
from kubewright.apiserver.admission.limit_ranger import LimitRanger
from kubewright.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from kubewright.apiserver.admission.node_restriction.plugin import NodeRestriction
from kubewright.apiserver.admission.persistent_volume_claim_resize import PersistentVolumeClaimResize
from kubewright.apiserver.admission.pod_security.plugin import PodSecurity
from kubewright.apiserver.admission.pod_topology_labels import PodTopologyLabels
from kubewright.apiserver.admission.policies.plugin import ValidatingAdmissionPolicy
from kubewright.apiserver.admission.priority import Priority
from kubewright.apiserver.admission.resource_quota import ResourceQuota
from kubewright.apiserver.admission.runtime_class import RuntimeClass
from kubewright.apiserver.admission.selectors import NamespaceLookup
from kubewright.apiserver.admission.service_account import ServiceAccount
from kubewright.apiserver.admission.storage_object_in_use_protection import StorageObjectInUseProtection
from kubewright.apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition
from kubewright.apiserver.admission.webhooks.configurations import Configurations
from kubewright.apiserver.admission.webhooks.matcher import Matcher
from kubewright.apiserver.admission.webhooks.mutating import MutatingAdmissionWebhook
from kubewright.apiserver.admission.webhooks.validating import ValidatingAdmissionWebhook
from kubewright.apiserver.auth.access import RbacAccess
from kubewright.apiserver.auth.escalation import RbacEscalationCheck
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.access import Access
from kubewright.apiserver.kinds.admission import Chain, Plugin
from kubewright.apiserver.outbound.service_resolver import ServiceResolver
from kubewright.apiserver.outbound.webhook_client import WebhookClient
from kubewright.apiserver.storage.store import Store

__all__ = ("admission_chain",)


def admission_chain(
    store: Store,
    catalog: Catalog,
    access: Access,
    clock: Clock,
    *,
    webhooks: WebhookClient,
    addresses: ServiceResolver,
    terminating_crds: TerminatingCrds,
) -> Chain:
    """The chain of a server. `webhooks` and `addresses` are how webhooks are called."""
    matcher = Matcher(NamespaceLookup(store), access)

    def configurations(plural: str) -> Configurations:
        return Configurations(store.table(f"admissionregistration.k8s.io/{plural}"), catalog, addresses)

    in_tree: tuple[Plugin, ...] = (
        # Not in AllOrderedPlugins: kube-apiserver wraps the chain of custom resources in this one.
        ForbidCreateInTerminatingCrd(terminating_crds),
        # Not in AllOrderedPlugins: in kube-apiserver part of the validation of the object, so the first to validate.
        DeviceAdminAccess(store),
        NamespaceLifecycle(store),
        LimitRanger(store),
        ServiceAccount(store, clock),
        NodeRestriction(store, access),
        TaintNodesByCondition(),
        PodSecurity(store),
        Priority(store),
        DefaultTolerationSeconds(),
        DefaultStorageClass(store),
        StorageObjectInUseProtection(),
        PersistentVolumeClaimResize(store),
        RuntimeClass(store),
        CertificateApproval(access),
        CertificateSigning(access),
        CertificateSubjectRestriction(),
        DefaultIngressClass(store),
        PodTopologyLabels(store),
    )
    return Chain(
        (
            *in_tree,
            # kube-apiserver runs the whole chain again when a webhook changed the object (admission/reinvocation.go);
            # of what comes after the webhooks nothing changes objects, so they run again only what comes before.
            MutatingAdmissionWebhook(
                configurations("mutatingwebhookconfigurations"), matcher, webhooks, reinvoked=in_tree
            ),
            # Not in AllOrderedPlugins: in kube-apiserver part of the storage of roles and bindings, which checks the
            # object as everything that mutates has left it. A server that knows no roles has nothing to check.
            *((RbacEscalationCheck(access.roles),) if isinstance(access, RbacAccess) else ()),
            ValidatingAdmissionPolicy(store, catalog, access),
            ValidatingAdmissionWebhook(configurations("validatingwebhookconfigurations"), matcher, webhooks),
            # Last: it does not validate with the others, but checks when the write is committed.
            ResourceQuota(store, catalog, clock),
        )
    )
