"""Pods that come right after their namespace: they wait a moment for its service account `default`.

A controller makes that account when it sees the namespace, so whoever creates a namespace and then a pod is often
faster. A real server looks again for a second or two before it refuses the pod; this judge waits until the account is
there, or that long. `builtin.admission`, next in the chain, gives the account to the pod, or refuses it.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, final

from kubewright._base.clock import Clock
from kubewright._base.tasks import within
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.kinds.resources import key_of
from kubewright.apiserver.storage.store import Change, Store, Table

__all__ = ("DefaultServiceAccount",)

_NAME: Final = "default"
_MIRROR: Final = "kubernetes.io/config.mirror"
_PATIENCE: Final = 1.35  # nine pauses of 100 to 200 ms each


@final
class DefaultServiceAccount:
    """Looks at each pod that is created without an account of its own."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._accounts = store.table("/serviceaccounts")
        self._clock = clock

    def handles(self, attributes: Attributes) -> bool:
        if attributes.verb != "CREATE" or attributes.resource.table != "/pods" or attributes.subresource:
            return False
        return self._accounts.get(key_of(attributes.namespace, _NAME)) is None and _wants_default(
            attributes.object or {}
        )

    async def mutate(self, attributes: Attributes) -> None:
        arrival = _Arrival(self._accounts, key_of(attributes.namespace, _NAME))
        try:
            await within(arrival.seen.wait(), _PATIENCE, clock=self._clock)
        except TimeoutError:
            return  # the next judge says what is missing
        finally:
            arrival.leave()

    async def validate(self, attributes: Attributes) -> None:
        return None


def _wants_default(pod: dict[str, Any]) -> bool:
    if _MIRROR in ((pod.get("metadata") or {}).get("annotations") or {}):
        return False
    return ((pod.get("spec") or {}).get("serviceAccountName") or _NAME) == _NAME


@final
class _Arrival:
    """Watches a table for one key."""

    def __init__(self, table: Table, key: str) -> None:
        self.seen = asyncio.Event()
        self._key = key
        self.leave = table.watch(self)

    def deliver(self, change: Change) -> None:
        if change.key == self._key and change.new is not None:
            self.seen.set()

    def table_gone(self) -> None:
        self.seen.set()
