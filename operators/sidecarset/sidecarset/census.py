"""The pods that a set is about, counted: which were injected, which are up to date, which are ready.

Only a pod with a record was injected; one that is older than the set is in scope but will never get the sidecars, so
it is counted by itself. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.k8s.core.v1 import Pod

from sidecarset.hashes import Revision
from sidecarset.inplace import is_changing
from sidecarset.records import BrokenRecordError, Record, records_of

__all__ = ("Census", "Member", "is_active", "take_census")


@dataclass(frozen=True)
class Member:
    """A pod that was injected by the set."""

    pod: Pod
    record: Record
    changing: bool
    """Its images were changed, and the kubelet is not done with that."""

    @property
    def is_ready(self) -> bool:
        """Whether it does its work, all of it as the pod's spec has it."""
        return not self.changing and is_ready(self.pod)

    def is_updated(self, revision: Revision) -> bool:
        """Whether its containers are those of the revision."""
        return self.record.revision.hash == revision.hash

    def is_blocked(self, revision: Revision) -> bool:
        """Whether it differs from the revision in more than images."""
        return not self.is_updated(revision) and self.record.revision.without_image != revision.without_image


@dataclass(frozen=True)
class Census:
    """Every active pod in scope."""

    members: tuple[Member, ...]
    uninjected: tuple[Pod, ...]
    broken: tuple[tuple[Pod, BrokenRecordError], ...]
    """Those of the uninjected whose record cannot be read."""


def take_census(pods: Iterable[Pod], set_name: str) -> Census:
    """Sort the pods in scope of a set; those that are on their way out do not count."""
    members, uninjected, broken = [], [], []
    for pod in filter(is_active, pods):
        try:
            record = records_of(pod).get(set_name)
        except BrokenRecordError as error:
            broken.append((pod, error))
            record = None
        if record is None:
            uninjected.append(pod)
        else:
            members.append(Member(pod, record, is_changing(pod, set_name)))
    return Census(tuple(members), tuple(uninjected), tuple(broken))


def is_active(pod: Pod) -> bool:
    """Whether a pod still has work to do."""
    return pod.status.phase not in ("Succeeded", "Failed") and pod.metadata.deletion_timestamp is None


def is_ready(pod: Pod) -> bool:
    """Whether the kubelet says so."""
    conditions = pod.status.conditions or ()
    return pod.status.phase == "Running" and any(item.type == "Ready" and item.status == "True" for item in conditions)
