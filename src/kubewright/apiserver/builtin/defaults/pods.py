"""Defaults of pods, and of the templates they are made from.

A pod gets a little more than a template: what depends on the whole pod is filled in once, in the pod.
"""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.defaults.containers import default_container
from kubewright.apiserver.builtin.defaults.resources import default_pod_resources, default_requests, round_amounts
from kubewright.apiserver.builtin.defaults.volumes import default_volume
from kubewright.apiserver.builtin.trees import Tree, fill, fill_empty, items, section

__all__ = ("default_pod", "default_pod_spec", "default_template")

# Set by clients long gone; the fields took their place and the server drops the annotations.
_OLD_ANNOTATIONS: Final = tuple(
    f"pod.{stage}.kubernetes.io/init-container{what}" for stage in ("beta", "alpha") for what in ("s", "-statuses")
)


def default_pod(pod: Tree) -> None:
    """A Pod."""
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
    """The `template` of a workload, a PodTemplate or a ReplicationController."""
    template = section(holder, "template")
    default_pod_spec(section(template, "spec"))
    _drop_old_annotations(template)


def default_pod_spec(spec: Tree) -> None:  # hot
    """What a pod and a template have in common."""
    fill_empty(spec, "dnsPolicy", "ClusterFirst")
    fill_empty(spec, "restartPolicy", "Always")
    fill(spec, "securityContext", {})
    fill(spec, "terminationGracePeriodSeconds", 30)
    fill_empty(spec, "schedulerName", "default-scheduler")
    # Two names of one field; the older follows.
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
