"""The preparation of Namespace, ServiceAccount, Job, DaemonSet, HorizontalPodAutoscaler, volumes, CSRs and others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubewright.apiserver.builtin.defaults.autoscaling import ROUND_TRIP_ANNOTATIONS
from kubewright.apiserver.builtin.defaults.workloads import TEMPLATE_GENERATION
from kubewright.apiserver.builtin.preparation.restoring import restore, restore_metadata
from kubewright.apiserver.builtin.trees import Tree, items, peek, section, semantic_equal, text

__all__ = (
    "clean_service_account",
    "create_api_service",
    "create_autoscaler",
    "create_certificate_request",
    "create_claim",
    "create_daemon_set",
    "create_job",
    "create_namespace",
    "create_volume",
    "drop_topology",
    "update_api_service_status",
    "update_autoscaler",
    "update_autoscaler_status",
    "update_certificate_approval",
    "update_certificate_status",
    "update_claim",
    "update_daemon_set",
    "update_daemon_set_status",
    "update_namespace",
    "update_range_status",
    "update_resource_claim_status",
    "update_volume_status",
)

_KUBERNETES: Final = "kubernetes"
_JOB_NAMES: Final = ("job-name", "batch.kubernetes.io/job-name")
_JOB_UIDS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
_SOURCES: Final = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def create_namespace(namespace: Tree, *, now: str) -> None:
    """Namespace: phase Active, and the finalizer kubernetes, so that its content is deleted first."""
    namespace["status"] = {"phase": "Active"}
    finalizers = section(namespace, "spec").setdefault("finalizers", [])
    if _KUBERNETES not in finalizers:
        finalizers.append(_KUBERNETES)


def update_namespace(namespace: Tree, old: Tree, *, now: str) -> None:
    """Namespace: spec.finalizers have an endpoint of their own."""
    restore(section(namespace, "spec"), old.get("spec") or {}, "finalizers")


def clean_service_account(account: Tree, old: Tree | None = None, *, now: str) -> None:
    """ServiceAccount: references to Secrets have names only."""
    secrets = items(account, "secrets")
    account_secrets = [{"name": secret["name"]} if secret.get("name") else {} for secret in secrets]
    if secrets:
        account["secrets"] = account_secrets


def create_job(job: Tree, *, now: str) -> None:
    """Job: generate the selector and labels by its uid, unless manualSelector."""
    spec = section(job, "spec")
    if spec.get("manualSelector"):
        return
    name, uid = text(job, "metadata", "name"), text(job, "metadata", "uid")
    labels = section(section(section(spec, "template"), "metadata"), "labels")
    for label in _JOB_NAMES:
        labels.setdefault(label, name)
    for label in _JOB_UIDS:
        labels.setdefault(label, uid)
    section(section(spec, "selector"), "matchLabels").setdefault(_JOB_UIDS[1], uid)
    if not peek(job, "metadata", "labels"):
        job["metadata"]["labels"] = dict(labels)


def drop_topology(endpoint_slice: Tree, old: Tree | None = None, *, now: str) -> None:
    """EndpointSlice: drop deprecatedTopology, unless the endpoints are unchanged."""
    if old is not None and semantic_equal(endpoint_slice.get("endpoints"), old.get("endpoints")):
        return
    for endpoint in items(endpoint_slice, "endpoints"):
        endpoint.pop("deprecatedTopology", None)


def create_daemon_set(daemon_set: Tree, *, now: str) -> None:
    """DaemonSet: the annotation with the template generation, for old clients."""
    annotations = section(section(daemon_set, "metadata"), "annotations")
    annotations[TEMPLATE_GENERATION] = str(max(_to_int(annotations.get(TEMPLATE_GENERATION)), 1))


def update_daemon_set_status(daemon_set: Tree, old: Tree, *, now: str) -> None:
    """DaemonSet status: reset the spec and the template generation."""
    restore(daemon_set, old, "spec")
    count = peek(old, "metadata", "annotations", TEMPLATE_GENERATION) or "0"
    section(section(daemon_set, "metadata"), "annotations")[TEMPLATE_GENERATION] = count


def create_autoscaler(autoscaler: Tree, *, now: str) -> None:
    """HorizontalPodAutoscaler: drop the status that v1 keeps in annotations."""
    _restore_round_trip(autoscaler, {}, "currentMetrics", "conditions")


def update_autoscaler(autoscaler: Tree, old: Tree, *, now: str) -> None:
    """HorizontalPodAutoscaler: reset the status that v1 keeps in annotations."""
    _restore_round_trip(autoscaler, old, "currentMetrics", "conditions")


def update_autoscaler_status(autoscaler: Tree, old: Tree, *, now: str) -> None:
    """HorizontalPodAutoscaler status: reset the spec, also what v1 keeps in annotations."""
    restore(autoscaler, old, "spec")
    _restore_round_trip(autoscaler, old, "metrics", "behavior")


def update_range_status(service_range: Tree, old: Tree, *, now: str) -> None:
    """ServiceCIDR status: reset spec and metadata; the main endpoint does not reset the status."""
    restore(service_range, old, "spec")
    restore_metadata(service_range, old)


def update_daemon_set(daemon_set: Tree, old: Tree, *, now: str) -> None:
    """DaemonSet: increase the template generation with the template."""
    count = _to_int(peek(old, "metadata", "annotations", TEMPLATE_GENERATION))
    if not semantic_equal(peek(daemon_set, "spec", "template"), peek(old, "spec", "template")):
        count += 1
    section(section(daemon_set, "metadata"), "annotations")[TEMPLATE_GENERATION] = str(count)


def create_volume(volume: Tree, *, now: str) -> None:
    """PersistentVolume: phase Pending since now."""
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": now}


def update_volume_status(volume: Tree, old: Tree, *, now: str) -> None:
    """PersistentVolume status: set lastPhaseTransitionTime if the phase changes and the client does not set it."""
    restore(volume, old, "spec")
    status, before = section(volume, "status"), old.get("status") or {}
    given, was = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        if given is None and was is not None:
            status["lastPhaseTransitionTime"] = was
    elif given is None or given == was:
        status["lastPhaseTransitionTime"] = now


def create_claim(claim: Tree, *, now: str) -> None:
    """PersistentVolumeClaim: phase Pending; dataSource and dataSourceRef agree."""
    claim["status"] = {"phase": "Pending"}
    _default_data_source(section(claim, "spec"), {})


def update_claim(claim: Tree, old: Tree, *, now: str) -> None:
    """PersistentVolumeClaim: dataSource and dataSourceRef agree."""
    _default_data_source(section(claim, "spec"), old.get("spec") or {})


def create_api_service(service: Tree, *, now: str) -> None:
    """APIService: a local one is available at once."""
    service.pop("status", None)
    if peek(service, "spec", "service") is None:
        message = "Local APIServices are always available"
        condition = {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "Local",
            "message": message,
        }
        service["status"] = {"conditions": [condition]}


def update_api_service_status(service: Tree, old: Tree, *, now: str) -> None:
    """APIService status: reset spec and metadata."""
    restore(service, old, "spec")
    metadata = section(service, "metadata")
    for name in ("labels", "annotations", "finalizers", "ownerReferences"):
        restore(metadata, old["metadata"], name)


def create_certificate_request(request: Tree, *, now: str, user: Mapping[str, Any] | None = None) -> None:
    """CertificateSigningRequest: the user comes from the request, not from the body."""
    spec = section(request, "spec")
    for name in ("username", "uid", "groups", "extra"):
        spec.pop(name, None)
        if user and user.get(name):
            spec[name] = user[name]
    request["status"] = {}


def update_certificate_status(request: Tree, old: Tree, *, now: str) -> None:
    """CertificateSigningRequest status, for signers: reset the Approved and Denied conditions."""
    restore(request, old, "spec")
    conditions, before = items(request.get("status"), "conditions"), items(old.get("status"), "conditions")
    for kind in ("Approved", "Denied"):
        was = [condition for condition in before if condition.get("type") == kind]
        places = [index for index, condition in enumerate(conditions) if condition.get("type") == kind]
        if len(was) == len(places):
            for index, condition in zip(places, was, strict=True):
                conditions[index] = condition
    _date_conditions(conditions, before, now)


def update_certificate_approval(request: Tree, old: Tree, *, now: str) -> None:
    """CertificateSigningRequest approval, for approvers: reset all but the conditions."""
    conditions = items(request.get("status"), "conditions")
    _date_conditions(conditions, items(old.get("status"), "conditions"), now)
    restore(request, old, "spec")
    status = request["status"] = dict(old.get("status") or {})
    status.pop("conditions", None)
    if conditions:
        status["conditions"] = conditions


def update_resource_claim_status(claim: Tree, old: Tree, *, now: str) -> None:
    """ResourceClaim status: drop the status of devices that were deallocated."""
    restore(claim, old, "spec")
    status = section(claim, "status")
    deallocated = _devices(old) - _devices(claim)
    if deallocated and status.get("devices"):
        status["devices"] = [device for device in status["devices"] if _device(device) not in deallocated]


def _restore_round_trip(autoscaler: Tree, old: Tree, *names: str) -> None:
    was = peek(old, "metadata", "annotations") or {}
    metadata = section(autoscaler, "metadata")
    annotations = dict(metadata.get("annotations") or {})
    for name in names:
        restore(annotations, was, ROUND_TRIP_ANNOTATIONS[name])
    metadata["annotations"] = annotations


def _devices(claim: Tree) -> set[tuple[str, ...]]:
    return {_device(result) for result in items(peek(claim, "status", "allocation", "devices"), "results")}


def _device(part: Tree) -> tuple[str, ...]:
    return tuple(part.get(name) or "" for name in ("driver", "pool", "device", "shareID"))


def _date_conditions(conditions: list[Tree], before: list[Tree], now: str) -> None:
    for condition in conditions:
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
        if not condition.get("lastTransitionTime"):
            unchanged = (
                was for was in before if all(was.get(name) == condition.get(name) for name in ("type", "status"))
            )
            condition["lastTransitionTime"] = next(
                (w["lastTransitionTime"] for w in unchanged if w.get("lastTransitionTime")), now
            )


def _default_data_source(spec: Tree, before: Tree) -> None:
    reference, source = spec.get("dataSourceRef"), spec.get("dataSource")
    in_use = before.get("dataSource") is not None or before.get("dataSourceRef") is not None
    if reference is not None and reference.get("namespace") and before.get("dataSourceRef") is None:
        reference = None  # sources of other namespaces are a feature that is off by default
        spec.pop("dataSourceRef")
    unsupported = source is not None and (source.get("apiGroup") or "", source.get("kind")) not in _SOURCES
    if unsupported and reference is None and not in_use:
        source = None
        spec.pop("dataSource")
    if source is not None and reference is None:
        spec["dataSourceRef"] = {name: source.get(name) for name in ("apiGroup", "kind", "name")}
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {name: reference.get(name) for name in ("apiGroup", "kind", "name")}


def _to_int(value: Any) -> int:
    try:
        return int(value or 0)
    except ValueError:
        return 0
