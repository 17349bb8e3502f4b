"""Change the images of a running pod, and see when the change is over.

The API server lets nobody change more of a running pod than its images. One patch sets the new images, the new record
and, under `apps.unisound.io/sidecarset-inplace-state`, the image IDs that ran before. The kubelet then replaces the
containers, one after the other, in its own time. Until it has, the pod may still look ready with the old images: only
another image ID, or the name of the new image in the status, tells that the change is over. Pure; the controller sends
the patch.
"""

import json
from dataclasses import replace
from typing import Any

from kubewright.k8s.core.v1 import ContainerStatus, Pod

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.hashes import Revision
from sidecarset.records import GROUP, records_of, write

__all__ = ("STATE", "is_changing", "update_patch")

STATE = f"{GROUP}sidecarset-inplace-state"

ImageIds = dict[str, str]


def update_patch(pod: Pod, sidecarset: SidecarSet, revision: Revision) -> dict[str, Any]:
    """A strategic merge patch that brings a pod's sidecars to the images of the set; a Conflict if it changed since."""
    images = {container.name: container.image for container in sidecarset.spec.containers}
    changed = {
        container.name: images[container.name]
        for container in pod.spec.containers
        if container.name in images and container.image != images[container.name]
    }
    records = records_of(pod)
    name = sidecarset.metadata.name
    records[name] = replace(records[name], revision=revision, generation=sidecarset.metadata.generation)
    annotations: dict[str, str] = {}
    write(annotations, records)
    statuses = _statuses(pod)
    before = {item: statuses[item].image_id if item in statuses else "" for item in changed}
    annotations[STATE] = json.dumps({**_states(pod), name: before}, separators=(",", ":"))
    return {
        "metadata": {
            "uid": pod.metadata.uid,
            "resourceVersion": pod.metadata.resource_version,
            "annotations": annotations,
        },
        "spec": {"containers": [{"name": item, "image": image} for item, image in changed.items()]},
    }


def is_changing(pod: Pod, set_name: str) -> bool:
    """Whether the kubelet has still to replace a container whose image was changed for this set."""
    before = _states(pod).get(set_name, {})
    if not before:
        return False
    wanted = {container.name: container.image or "" for container in pod.spec.containers}
    statuses = _statuses(pod)
    return any(
        name in wanted and not _runs(wanted[name], statuses.get(name), image_id) for name, image_id in before.items()
    )


def _runs(image: str, status: ContainerStatus | None, before: str) -> bool:
    """Whether a container has been started with its new image."""
    if status is None or not status.image_id:
        return False
    _, at, digest = image.partition("@")
    if at:
        return status.image_id.endswith(digest)
    return status.image_id != before or _full_name(status.image) == _full_name(image)


def _full_name(image: str) -> str:
    """As a container runtime reports it: `nginx` is `docker.io/library/nginx:latest`."""
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif "." not in first and ":" not in first and first != "localhost":
        image = f"docker.io/{image}"
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


def _states(pod: Pod) -> dict[str, ImageIds]:
    """By set. What somebody else has written there says nothing about a change."""
    try:
        trees = json.loads(pod.metadata.annotations.get(STATE, "{}"))
        return {name: {item: str(image_id) for item, image_id in tree.items()} for name, tree in trees.items()}
    except (AttributeError, RecursionError, ValueError):
        return {}


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    return {status.name: status for status in pod.status.container_statuses or ()}
