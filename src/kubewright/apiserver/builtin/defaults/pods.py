"""Defaults of pods and pod templates.

`default_pod` (SetDefaults_Pod) sets more than `default_pod_spec` (SetDefaults_PodSpec), which templates have too:
requests from limits, for example, are set in pods only, so that a template does not change when defaults do.
"""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.defaults.containers import default_container
from kubewright.apiserver.builtin.defaults.resources import default_pod_resources, default_requests, round_amounts
from kubewright.apiserver.builtin.defaults.volumes import default_volume
from kubewright.apiserver.builtin.trees import Tree, fill, fill_empty, items, section

__all__ = ("default_pod", "default_pod_spec", "default_template")

# Annotations of Kubernetes before 1.8, which fields have replaced (`DropInitContainerAnnotations`).
_OLD_ANNOTATIONS: Final = tuple(
    f"pod.{stage}.kubernetes.io/init-container{what}" for stage in ("beta", "alpha") for what in ("s", "-statuses")
)


def default_pod(pod: Tree) -> None:
    """Pod."""
    spec = section(pod, "spec")
    for name in ("containers", "initContainers"):
        for container in items(spec, name):
            default_requests(container)
    default_pod_resources(spec)
    fill(spec, "enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for name in ("containers", "initContainers"):
            for container in items(spec, name):
                for port in items(container, "ports"):
                    fill_empty(port, "hostPort", port.get("containerPort", 0))
    default_pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _drop_old_annotations(pod)
    status = pod.get("status")
    if status:
        _default_status(status)


def default_template(holder: Tree) -> None:
    """The pod template of a workload or a PodTemplate."""
    template = section(holder, "template")
    default_pod_spec(section(template, "spec"))
    _drop_old_annotations(template)


def default_pod_spec(spec: Tree) -> None:  # hot
    """The spec of a pod or a template."""
    fill_empty(spec, "dnsPolicy", "ClusterFirst")
    fill_empty(spec, "restartPolicy", "Always")
    fill(spec, "securityContext", {})
    fill(spec, "terminationGracePeriodSeconds", 30)
    fill_empty(spec, "schedulerName", "default-scheduler")
    # serviceAccount is the deprecated alias of serviceAccountName.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in items(spec, "volumes"):
        default_volume(volume)
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for container in items(spec, name):
            default_container(container)
    round_amounts(spec, "overhead")
    round_amounts(spec.get("resources"), "limits", "requests")


def _default_status(status: Tree) -> None:
    addresses = status.get("podIPs")
    address = status.get("podIP")
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and not address:
        status["podIP"] = addresses[0].get("ip", "")
    for name in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for container in items(status, name):
            round_amounts(container, "allocatedResources")
            round_amounts(container.get("resources"), "limits", "requests")


def _drop_old_annotations(holder: Tree) -> None:
    annotations = (holder.get("metadata") or {}).get("annotations")
    if annotations:
        for name in _OLD_ANNOTATIONS:
            annotations.pop(name, None)
