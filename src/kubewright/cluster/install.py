"""Install CustomResourceDefinitions and wait until the server serves their kinds, as envtest's InstallCRDs does.

Uses server-side apply: installing twice equals installing once, and a CRD may be larger than kubectl's
last-applied annotation allows. Called by tests, the demo and the `install`, `run` and `dev` commands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from kubewright.api.codec import from_tree
from kubewright.api.dynamic import Dynamic, DynamicObject
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.resource import KubeObject
from kubewright.client.client import Client
from kubewright.errors import ClusterError
from kubewright.generate.crds.manifests import crd_for

__all__ = ("install_crds",)

CRD = Dynamic(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
_METADATA: Final = ("name", "labels", "annotations")
_MANAGER: Final = "kubewright-install"
_POLL: Final = 0.02
"""Seconds between two requests for discovery."""


async def install_crds(client: Client, *kinds: type[KubeObject] | Mapping[str, Any], timeout: float = 30.0) -> None:
    """Install the CRD of each class (or each CRD given as plain data); return when discovery lists all kinds.

    For a kind with several versions pass one CRD that has them all: `crd_for(V1, V2)`.
    """
    applied = [await _apply(client, crd_for(kind) if isinstance(kind, type) else kind, timeout) for kind in kinds]
    for crd in applied:
        try:
            async with asyncio.timeout(timeout):
                await _until_established(client, crd)
        except TimeoutError:
            raise ClusterError(
                f"the CRD {crd.metadata.name} was not established within {timeout:g} s; "
                f"see kubectl describe crd {crd.metadata.name}"
            ) from None
    try:
        async with asyncio.timeout(timeout):
            await _until_listed(client, {gvk for crd in applied for gvk in _served_kinds(crd)})
    except TimeoutError:
        names = ", ".join(crd.metadata.name for crd in applied)
        raise ClusterError(
            f"the server did not list the kinds of {names} within {timeout:g} s; see kubectl api-resources"
        ) from None


async def _apply(client: Client, tree: Mapping[str, Any], timeout: float) -> DynamicObject:
    metadata = {key: tree["metadata"][key] for key in _METADATA if tree["metadata"].get(key)}
    wanted = from_tree(CRD, {"metadata": metadata, "spec": tree["spec"]})
    crd = await client.apply(wanted, field_manager=_MANAGER, force=True)
    if crd.metadata.deletion_timestamp is None:
        return crd
    # The CRD is terminating. Its finalizer deletes every object of the kind, also objects created from now on.
    try:
        async with asyncio.timeout(timeout):
            await _until_gone(client, crd)
    except TimeoutError:
        raise ClusterError(
            f"the CRD {crd.metadata.name} is being deleted and still there after {timeout:g} s; "
            "see which of its objects have finalizers, and which controller removes them"
        ) from None
    return await client.apply(wanted, field_manager=_MANAGER, force=True)


async def _until_gone(client: Client, crd: DynamicObject) -> None:
    async with client.watch(
        CRD, fields={"metadata.name": crd.metadata.name}, resource_version=crd.metadata.resource_version
    ) as events:
        async for event in events:
            if event.type == "DELETED":
                return


async def _until_established(client: Client, crd: DynamicObject) -> None:
    if _established(crd):
        return
    async with client.watch(
        CRD, fields={"metadata.name": crd.metadata.name}, resource_version=crd.metadata.resource_version
    ) as events:
        async for event in events:
            if event.type != "DELETED" and _established(event.object):
                return


async def _until_listed(client: Client, kinds: set[GroupVersionKind]) -> None:
    """Wait for discovery, which lists a kind a moment after it is established: clients such as kubectl rely on it."""
    while kinds:
        listed = {one.gvk for one in (await client.discovery.resources(refresh=True)).items}
        if kinds <= listed:
            return
        await asyncio.sleep(_POLL)


def _served_kinds(crd: DynamicObject) -> list[GroupVersionKind]:
    spec = crd["spec"]
    versions = [version["name"] for version in spec["versions"] if version["served"]]
    return [GroupVersionKind(spec["group"], version, spec["names"]["kind"]) for version in versions]


def _established(crd: DynamicObject) -> bool:
    conditions = {item["type"]: item for item in crd.get("status.conditions") or ()}
    accepted = conditions.get("NamesAccepted", {})
    if accepted.get("status") == "False":
        raise ClusterError(f"the CRD {crd.metadata.name} was not accepted: {accepted.get('message')}")
    return bool(conditions.get("Established", {}).get("status") == "True")
