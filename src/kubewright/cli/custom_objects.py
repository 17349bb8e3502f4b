"""The objects of an operator's CRDs: how many there are, and their deletion before their CRD and their operator go.

An object with a finalizer of the operator goes only while the operator runs. So `undeploy` deletes the objects first,
waits, and leaves the operator alone if one of them stays; `uninstall` does the same with the CRDs. Deleting a CRD would
delete its objects, too, but then a CRD that is stuck could not be installed again.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from kubewright.cli.reports import count_noun
from kubewright.errors import ApiError, ClusterError, NotFound, ServerError

if TYPE_CHECKING:
    from kubewright.api.resource import KubeObject
    from kubewright.client.client import Client
    from kubewright.k8s.apiextensions.v1 import CustomResourceDefinition

__all__ = ("CustomKind", "custom_kinds", "delete_crd", "delete_objects", "describe", "finalizers_left")

_POLL_SECONDS: Final = 0.2
_SHOWN: Final = 5
"""So many objects are named in a message."""


@final
class CustomKind(msgspec.Struct, frozen=True, kw_only=True):
    """A CRD that the cluster has, and the class for the metadata of its objects."""

    crd: str
    kind: type[KubeObject]


async def custom_kinds(client: Client, names: list[str]) -> list[CustomKind]:
    """The CRDs of these names that the cluster has."""
    from kubewright.api.dynamic import Dynamic, metadata_of
    from kubewright.k8s.apiextensions.v1 import CustomResourceDefinition

    found = []
    for name in names:
        crd = await client.find(CustomResourceDefinition, name)
        if crd is None:
            continue
        kind = Dynamic(
            f"{crd.spec.group}/{_served_version(crd)}",
            crd.spec.names.kind,
            plural=crd.spec.names.plural,
            namespaced=crd.spec.scope == "Namespaced",
        )
        found.append(CustomKind(crd=name, kind=metadata_of(kind)))
    return found


def _served_version(crd: CustomResourceDefinition) -> str:
    """The stored version if it is served: its objects can be listed while a conversion webhook is down."""
    served = [version for version in crd.spec.versions if version.served]
    chosen = next((version for version in served if version.storage), None) or next(iter(served or crd.spec.versions))
    return chosen.name


async def describe(client: Client, kinds: list[CustomKind]) -> list[str]:
    """A line about each CRD and its objects, for people."""
    lines = []
    for item in kinds:
        try:
            count = count_noun(len(await client.list(item.kind)), "object")
        except ApiError:  # not allowed, or not served: the CRD goes, and whatever it has
            count = "every object"
        lines.append(f"CustomResourceDefinition {item.crd}, and with it {count} of its kind")
    return lines


async def delete_objects(client: Client, kinds: list[CustomKind], *, timeout: float) -> int:
    """Delete all objects of these kinds and wait until they are gone; returns how many there were.

    A ClusterError names those that are left, their finalizers, and what can be done.
    """
    seen: set[str] = set()
    refusal = ""
    try:
        async with asyncio.timeout(timeout):
            while left := await _objects(client, kinds):
                seen |= {obj.metadata.uid for obj in left}
                # Each time, since an operator may have made another object meanwhile.
                for obj in left:
                    if obj.metadata.deletion_timestamp is None:
                        refusal = await _delete(client, obj) or refusal
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        left = await _objects(client, kinds)
        if left:
            said = f" The server said: {refusal}." if refusal else ""
            raise ClusterError(
                f"nothing but objects was deleted: after {timeout:g} s {_stuck_message(left)}{said}"
            ) from None
    return len(seen)


async def delete_crd(client: Client, name: str, *, timeout: float) -> bool:
    """Delete a CRD and wait until it is gone; returns whether it existed."""
    from kubewright.k8s.apiextensions.v1 import CustomResourceDefinition

    try:
        async with asyncio.timeout(timeout):
            left = await client.delete(CustomResourceDefinition, name)
            if left is None:
                return True
            # Watch from the version of the delete, so that the DELETED event is seen even if it is past.
            since, fields = left.metadata.resource_version, {"metadata.name": name}
            async with client.watch(CustomResourceDefinition, fields=fields, resource_version=since) as events:
                async for event in events:
                    if event.type == "DELETED":
                        break
    except NotFound:
        return False
    except TimeoutError:
        left_over = await _objects(client, await custom_kinds(client, [name]))
        why = _stuck_message(left_over) if left_over else f"see kubectl describe crd {name}"
        raise ClusterError(f"the CRD {name} is not gone after {timeout:g} s: {why}") from None
    return True


async def finalizers_left(client: Client, kinds: list[CustomKind]) -> list[str]:
    """A line for each object that cannot be deleted without its operator, for people."""
    return [_named(obj) for obj in await _objects(client, kinds) if obj.metadata.finalizers]


async def _objects(client: Client, kinds: list[CustomKind]) -> list[KubeObject]:
    found: list[KubeObject] = []
    for item in kinds:
        try:
            found += await client.list(item.kind)
        except NotFound:  # no longer served
            continue
    return found


async def _delete(client: Client, obj: KubeObject) -> str:
    """Delete an object; returns what the server said if it could not, such as that a webhook does not answer."""
    try:
        await client.delete(obj, propagation="Background")
    except NotFound:
        pass
    except ServerError as error:
        return str(error)
    return ""


def _named(obj: KubeObject) -> str:
    finalizers = ", ".join(obj.metadata.finalizers) or "none"
    return f"{obj.kind} {obj.key} (finalizers: {finalizers})"


def _stuck_message(left: list[KubeObject]) -> str:
    shown = "; ".join(_named(obj) for obj in left[:_SHOWN])
    more = f"; and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    verb = "is" if len(left) == 1 else "are"
    first = next((obj for obj in left if obj.metadata.finalizers), left[0])
    return (
        f"{count_noun(len(left), 'object')} {verb} still there: {shown}{more}. An operator takes its finalizer away "
        "when it has cleaned up: see that it runs (`kubewright run` will do), look at its log, then try again. To give "
        f"up what the finalizer guards: {_patch_command(first)}"
    )


def _patch_command(obj: KubeObject) -> str:
    definition: Any = obj.__definition__
    place = f" --namespace {obj.metadata.namespace}" if obj.metadata.namespace else ""
    patch = json.dumps({"metadata": {"finalizers": None}}, separators=(",", ":"))
    return (
        f"kubectl patch {definition.plural}.{definition.gvk.group} {obj.metadata.name}{place} --type merge "
        f"--patch '{patch}'"
    )
