"""The resource pools of a node, gathered from the ResourceSlices that drivers publish.

A pool is the slices of one driver and pool name with the highest generation. Devices of an incomplete pool (slices are
missing) or an invalid one (a name occurs twice) are not allocated. Pure; called by `allocation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, final

import msgspec

from kubewright.api.codec import to_tree
from kubewright.cluster.scheduler.node_affinity import matches_selector_terms
from kubewright.cluster.scheduler.node_info import NodeInfo
from kubewright.k8s.core.v1 import NodeSelectorRequirement
from kubewright.k8s.resource.v1 import Device, ResourceSlice

__all__ = ("DeviceID", "Pool", "PoolDevice", "gather_pools", "node_selector_for")

DeviceID = tuple[str, str, str]
"""Driver, pool and name."""


@final
class PoolDevice(msgspec.Struct, frozen=True):
    """A device and its ResourceSlice."""

    device: Device
    slice: ResourceSlice

    @property
    def id(self) -> DeviceID:
        spec = self.slice.spec
        return spec.driver, spec.pool.name, self.device.name


@final
class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a pool that one node can access."""

    driver: str
    name: str
    complete: bool
    """Whether all slices exist, including those of other nodes."""
    valid: bool
    """Whether the device names are unique."""
    pool_devices: tuple[PoolDevice, ...] = ()


def gather_pools(node: NodeInfo, slices: Sequence[ResourceSlice]) -> list[Pool]:
    """The pools with devices for a node, sorted by driver and name."""
    reachable: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in slices:
        if _is_reachable(each, node):
            reachable.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
    found = (_pool(members, slices) for _, members in sorted(reachable.items()))
    return [pool for pool in found if pool is not None]


def _is_reachable(each: ResourceSlice, node: NodeInfo) -> bool:
    spec = each.spec
    if spec.shared_counters or spec.per_device_node_selection is not None:
        # Partitionable devices are disabled by default in Kubernetes: without the feature the slice is ignored.
        return False
    if spec.node_name:
        return spec.node_name == node.name
    if spec.all_nodes:
        return True
    return spec.node_selector is not None and matches_selector_terms(spec.node_selector.node_selector_terms, node)


def _pool(reachable: Sequence[ResourceSlice], slices: Iterable[ResourceSlice]) -> Pool | None:
    first = reachable[0].spec
    all_slices = [each for each in slices if (each.spec.driver, each.spec.pool.name) == (first.driver, first.pool.name)]
    newest = max(each.spec.pool.generation for each in reachable)
    if any(each.spec.pool.generation > newest for each in all_slices):
        return None  # the driver published a newer generation without devices for this node
    current = [each for each in reachable if each.spec.pool.generation == newest]
    count = sum(each.spec.pool.generation == newest for each in all_slices)
    pool_devices = tuple(PoolDevice(device, each) for each in current for device in each.spec.devices or ())
    return Pool(
        driver=first.driver,
        name=first.pool.name,
        complete=count == current[0].spec.pool.resource_slice_count,
        valid=len({pool_device.device.name for pool_device in pool_devices}) == len(pool_devices),
        pool_devices=pool_devices,
    )


def node_selector_for(pool_devices: Iterable[PoolDevice]) -> dict[str, Any] | None:
    """The node selector of the nodes that can access all devices; None if all nodes can."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for pool_device in pool_devices:
        spec = pool_device.slice.spec
        if spec.node_name:
            named = {"key": "metadata.name", "operator": "In", "values": [spec.node_name]}
            return {"nodeSelectorTerms": [{"matchFields": [named]}]}
        for term in spec.node_selector.node_selector_terms if spec.node_selector is not None else ():
            _add_missing(fields, term.match_fields or ())
            _add_missing(expressions, term.match_expressions or ())
    term_tree: dict[str, Any] = {}
    if expressions:
        term_tree["matchExpressions"] = [to_tree(each) for each in expressions]
    if fields:
        term_tree["matchFields"] = [to_tree(each) for each in fields]
    return {"nodeSelectorTerms": [term_tree]} if term_tree else None


def _add_missing(merged: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]) -> None:
    for each in more:
        if not any(_same(each, other) for other in merged):
            merged.append(each)


def _same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (one.key, one.operator, set(one.values or ())) == (other.key, other.operator, set(other.values or ()))
