"""The webhook configurations that an operator has registered itself: found by their label, and removed.

`run` and `dev` register webhooks for as long as they run, and an operator with `webhook_registration` does so for good.
`uninstall` removes those that nobody serves first, because the API server asks them about the deletions, and the rest
when the CRDs are gone. What generated manifests have made is not theirs: `undeploy` deletes that by the manifests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright.errors import Forbidden, NotFound

if TYPE_CHECKING:
    from kubewright.api.dynamic import DynamicObject
    from kubewright.client.client import Client
    from kubewright.manager.operator import Operator

__all__ = ("registered_webhooks", "remove_dead_webhooks", "remove_webhooks")


async def registered_webhooks(client: Client, operator: str) -> list[DynamicObject]:
    """The webhook configurations that the operator of this name has registered."""
    from kubewright.webhooks.registration.registrar import REGISTERED_LABEL
    from kubewright.webhooks.registration.targets import KINDS

    try:
        return [obj for kind in KINDS.values() for obj in await client.list(kind, labels={REGISTERED_LABEL: operator})]
    except Forbidden:  # who may not see them has registered none
        return []


async def remove_dead_webhooks(client: Client, operator: Operator) -> list[str]:
    """Remove those that cannot be called, and give CRDs back the conversion they had; returns the names."""
    from kubewright.webhooks.certificates.trust import LOCAL_LABEL
    from kubewright.webhooks.registration.calls import calls_of
    from kubewright.webhooks.registration.local_processes import has_ended, undo
    from kubewright.webhooks.registration.targets import CRD

    found = await registered_webhooks(client, operator.name)
    for name in operator.by_crd:
        crd = await client.find(CRD, name)
        if crd is not None and LOCAL_LABEL in crd.metadata.labels:
            found.append(crd)
    removed = []
    for obj in found:
        answers = [await call.problem(client) for call in calls_of(obj)]
        if await has_ended(obj) or any(answer is not None and answer.certain for answer in answers):
            await undo(client, obj)
            removed += [obj.metadata.name] if type(obj) is not CRD else []
    return removed


async def remove_webhooks(client: Client, operator: str) -> list[str]:
    """Remove what the operator has registered, but what a process that runs will remove itself; returns the names."""
    from kubewright.webhooks.certificates.trust import LOCAL_LABEL

    removed = []
    for obj in await registered_webhooks(client, operator):
        if LOCAL_LABEL not in obj.metadata.labels:
            try:
                await client.delete(obj)
            except NotFound:
                continue
            removed.append(obj.metadata.name)
    return removed
