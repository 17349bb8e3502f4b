"""PodReader: the pods of a namespace, never older than what this operator has done.

What was written and answered is in the cache at once, so a set never counts too few because its watch is slow. That
leaves the writes whose answer was lost: nobody knows whether a pod was made. After one of those the server itself is
asked, until the cache shows the same pods.

This holds within one process: with two replicas of the operator, leader election is needed.
"""

from collections.abc import Iterable, Sequence
from typing import final

from kubewright import Context, ObjectKey
from kubewright.errors import ConnectFailed, KubewrightError, ServerError, TransportError
from kubewright.k8s.core.v1 import Pod

from podset.api.v1alpha1.podset import PodSet
from podset.membership import belongs
from podset.pods import is_deleting


def is_unanswered(error: KubewrightError) -> bool:
    """Whether a write that failed like this may have been executed all the same."""
    return isinstance(error, TransportError | ServerError) and not isinstance(error, ConnectFailed)


@final
class PodReader:
    """Reads pods for all sets, and remembers for which of them the cache is not to be trusted."""

    def __init__(self) -> None:
        self._in_doubt: set[ObjectKey] = set()

    def note(self, podset: PodSet, errors: Iterable[KubewrightError]) -> None:
        """Writes for this set failed."""
        if any(map(is_unanswered, errors)):
            self._in_doubt.add(podset.key)

    async def pods(self, podset: PodSet, ctx: Context) -> Sequence[Pod]:
        """All pods of the set's namespace."""
        namespace = podset.metadata.namespace
        seen = await ctx.client.list(Pod, namespace=namespace)
        if podset.key not in self._in_doubt:
            return seen.items
        stored = await ctx.client.live.list(Pod, namespace=namespace)
        if _members(stored, podset) == _members(seen, podset):
            self._in_doubt.discard(podset.key)
        return stored.items


def _members(pods: Iterable[Pod], podset: PodSet) -> set[tuple[str, bool]]:
    return {(pod.metadata.uid, is_deleting(pod)) for pod in pods if belongs(pod, podset)}
