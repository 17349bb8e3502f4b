"""Sets that get in each other's way: two that can select one pod and bring a container of the same name.

Asked by the webhook before a set is stored. Two sets that are created at the same moment may pass each other unseen;
the injection, which refuses such a pod, is the backstop. Pure.
"""

from collections.abc import Iterable

from kubewright import FieldErrors
from kubewright.api import to_tree
from kubewright.errors import DecodeError

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.defaults import defaulted
from sidecarset.overlap import can_share_a_pod
from sidecarset.selection import Selection

__all__ = ("check_others",)


def check_others(sidecarset: SidecarSet, others: Iterable[SidecarSet], errors: FieldErrors) -> None:
    """Say what a set, with its defaults filled in, has in common with others that it may not."""
    try:
        selection = Selection.of(sidecarset.spec)
    except DecodeError:
        return  # said elsewhere
    for other in others:
        if other.metadata.name == sidecarset.metadata.name or other.metadata.deletion_timestamp is not None:
            continue
        try:
            shared = can_share_a_pod(selection, Selection.of(other.spec))
        except DecodeError:
            continue  # it selects nothing
        if shared:
            _check_names(sidecarset, other, errors)
            _check_volumes(sidecarset, defaulted(other), errors)


def _check_names(sidecarset: SidecarSet, other: SidecarSet, errors: FieldErrors) -> None:
    taken = {container.name for container in (*other.spec.containers, *other.spec.init_containers)}
    lists = (("containers", sidecarset.spec.containers), ("initContainers", sidecarset.spec.init_containers))
    for path, containers in lists:
        for index, container in enumerate(containers):
            if container.name in taken:
                errors.add(
                    f"spec.{path}[{index}].name",
                    f"SidecarSet {other.metadata.name} brings a container of this name to some of the same pods; "
                    "rename it, or change a selector",
                )


def _check_volumes(sidecarset: SidecarSet, other: SidecarSet, errors: FieldErrors) -> None:
    theirs = {volume.name: to_tree(volume) for volume in other.spec.volumes}
    for index, volume in enumerate(sidecarset.spec.volumes):
        if volume.name in theirs and to_tree(volume) != theirs[volume.name]:
            errors.add(
                f"spec.volumes[{index}].name",
                f"SidecarSet {other.metadata.name} brings another volume of this name to some of the same pods; "
                "rename it, or make both the same",
            )
