"""Objects for tests that need no cluster."""

from typing import Any

from kubewright import FieldErrors
from kubewright.api import copy_of, from_tree
from kubewright.k8s.core.v1 import Pod

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.census import Member, take_census
from sidecarset.defaults import defaulted
from sidecarset.hashes import revision_of
from sidecarset.injection import inject

LOG = {"name": "log", "image": "fluent-bit:3.1"}


def a_set(name: str = "logs", **spec: Any) -> SidecarSet:
    """A set for pods with the label app=web, as the webhook leaves it."""
    tree = {"selector": {"matchLabels": {"app": "web"}}, "containers": [LOG], **spec}
    return defaulted(from_tree(SidecarSet, {"metadata": {"name": name, "generation": 1}, "spec": tree}))


def a_pod(name: str = "web", **fields: Any) -> Pod:
    """A pod with the label app=web; `spec`, `metadata` and `status` as wanted."""
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "labels": {"app": "web"},
        **fields.get("metadata", {}),
    }
    spec = {"containers": [{"name": "main", "image": "nginx:1.27"}], **fields.get("spec", {})}
    return from_tree(Pod, {"metadata": metadata, "spec": spec, "status": fields.get("status", {})})


def injected(pod: Pod, *sets: SidecarSet) -> Pod:
    """A copy of a pod as it is after the webhook."""
    copy = copy_of(pod)
    errors = FieldErrors()
    inject(copy, sets, errors)
    assert not errors, errors
    return copy


def running(pod: Pod, *, ready: bool = True, **image_ids: str) -> Pod:
    """A copy of a pod as its kubelet reports it; image IDs by container, those of the spec's images if not given."""
    tree = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "containerStatuses": [
            {
                "name": item.name,
                "image": f"docker.io/library/{item.image}",
                "imageID": image_ids.get(item.name, f"docker.io/library/{item.image}@sha256:1"),
                "ready": ready,
                "restartCount": 0,
            }
            for item in pod.spec.containers
        ],
    }
    copy = copy_of(pod)
    copy.spec.node_name = "node-1"
    copy.status = from_tree(Pod, {"metadata": {}, "spec": {"containers": []}, "status": tree}).status
    return copy


def members(sidecarset: SidecarSet, *pods: Pod) -> tuple[Member, ...]:
    return take_census(pods, sidecarset.metadata.name).members


__all__ = ("LOG", "a_pod", "a_set", "injected", "members", "revision_of", "running")
