"""Waits for a state of a server, seen through a watch: nothing here sleeps.

`kubewright.testing` has the waits for one object, which operators use as well; these look at all objects of a kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from kubewright import Client
from kubewright.api.quantity import Quantity
from kubewright.api.resource import KubeObject
from kubewright.client.watch import Bookmark
from kubewright.errors import Forbidden
from kubewright.k8s.coordination.v1 import Lease
from kubewright.testing import time_limit, until

K = TypeVar("K", bound=KubeObject)


async def present(
    client: Client, kind: type[K], namespace: str, holds: Callable[[dict[str, K]], bool], *, seconds: float = 120
) -> dict[str, K]:
    """All objects of a kind by name, once they satisfy a condition, seen through a watch."""
    have: dict[str, K] = {}
    try:
        async with time_limit(seconds):
            while not await _watched(client, kind, namespace, have, holds):
                have.clear()  # a server ends the watch of somebody who reads too slowly: the next one begins anew
        return have
    except TimeoutError:
        raise AssertionError(f"after {seconds:g} s there is still {have}") from None


async def reach(client: Client, given: K, holds: Callable[[K], bool]) -> K:
    """The object once it satisfies a condition."""
    return await until(client, type(given), given.key, holds, timeout=60)


NO_LEASES: Final = {"count/leases.coordination.k8s.io": Quantity("0")}
"""What a quota allows in a test that has to know whether it is heeded."""


async def quota_heeded(client: Client, namespace: str, *, forbidden: KubeObject | None = None) -> None:
    """Returns when the server refuses what a quota does not allow: a lease, if it is one with `NO_LEASES`.

    It learns of a quota a moment later than others see it. What is made before is let through, and never counted.
    """
    async with time_limit(60):
        while True:
            try:
                await client.create(forbidden or Lease.named("none", namespace), dry_run=True)
            except Forbidden as refusal:
                if "exceeded quota" in str(refusal):
                    return


async def _watched(
    client: Client, kind: type[K], namespace: str, have: dict[str, K], holds: Callable[[dict[str, K]], bool]
) -> bool:
    """Keep `have` up to date until it satisfies a condition; False if the watch ends before."""
    complete = False
    async with client.watch(kind, namespace=namespace, initial_events=True, bookmarks=True) as events:
        async for event in events:
            if isinstance(event, Bookmark):
                complete = complete or event.initial_events_end
            elif event.type == "DELETED":
                have.pop(event.object.metadata.name, None)
            else:
                have[event.object.metadata.name] = event.object
            if complete and holds(have):
                return True
    return False
