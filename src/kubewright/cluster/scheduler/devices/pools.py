"""The devices that a node can reach: what drivers publish in ResourceSlices, sorted into pools.

A pool is all slices of one driver and pool name of the newest generation. Nothing is taken from one of which slices are
missing, or in which a name occurs twice. Pure; called by `device_allocation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, final

import msgspec

from kubewright.api.codec import to_tree
from kubewright.cluster.scheduler.filters import NodeInfo, matches_terms
from kubewright.k8s.core.v1 import NodeSelectorRequirement
from kubewright.k8s.resource.v1 import Device, ResourceSlice

__all__ = ("DeviceId", "Offer", "Pool", "pools_for", "where_usable")

DeviceId = tuple[str, str, str]
"""Driver, pool and name."""


@final
class Offer(msgspec.Struct, frozen=True):
    """A device, and the slice it is in."""

    device: Device
    slice: ResourceSlice

    @property
    def id(self) -> DeviceId:
        spec = self.slice.spec
        return spec.driver, spec.pool.name, self.device.name


@final
class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a pool that one node can reach."""

    driver: str
    name: str
    complete: bool
    """Whether all of its slices are there, those for other nodes included."""
    valid: bool
    """Whether no name occurs twice."""
    offers: tuple[Offer, ...] = ()


def pools_for(node: NodeInfo, slices: Sequence[ResourceSlice]) -> list[Pool]:
    """The pools with something for a node, in the order of their names."""
    reachable: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in slices:
        if _is_for(each, node):
            reachable.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
    found = (_pool(members, slices) for _, members in sorted(reachable.items()))
    return [pool for pool in found if pool is not None]


def _is_for(each: ResourceSlice, node: NodeInfo) -> bool:
    spec = each.spec
    if spec.shared_counters or spec.per_device_node_selection is not None:
        return False  # of devices that are parts of others; a scheduler that does not know these leaves them alone
    if spec.node_name:
        return spec.node_name == node.name
    if spec.all_nodes:
        return True
    return spec.node_selector is not None and matches_terms(spec.node_selector.node_selector_terms, node)


def _pool(reachable: Sequence[ResourceSlice], slices: Iterable[ResourceSlice]) -> Pool | None:
    first = reachable[0].spec
    whole = [each for each in slices if (each.spec.driver, each.spec.pool.name) == (first.driver, first.pool.name)]
    newest = max(each.spec.pool.generation for each in reachable)
    if any(each.spec.pool.generation > newest for each in whole):
        return None  # being replaced by one that has nothing for this node
    current = [each for each in reachable if each.spec.pool.generation == newest]
    count = sum(each.spec.pool.generation == newest for each in whole)
    offers = tuple(Offer(device, each) for each in current for device in each.spec.devices or ())
    return Pool(
        driver=first.driver,
        name=first.pool.name,
        complete=count == current[0].spec.pool.resource_slice_count,
        valid=len({offer.device.name for offer in offers}) == len(offers),
        offers=offers,
    )


def where_usable(offers: Iterable[Offer]) -> dict[str, Any] | None:
    """The nodes on which all of these devices can be used, as a node selector; None if on all."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for offer in offers:
        spec = offer.slice.spec
        if spec.node_name:
            named = {"key": "metadata.name", "operator": "In", "values": [spec.node_name]}
            return {"nodeSelectorTerms": [{"matchFields": [named]}]}
        for term in spec.node_selector.node_selector_terms if spec.node_selector is not None else ():
            _add_new(fields, term.match_fields or ())
            _add_new(expressions, term.match_expressions or ())
    term_tree: dict[str, Any] = {}
    if expressions:
        term_tree["matchExpressions"] = [to_tree(each) for each in expressions]
    if fields:
        term_tree["matchFields"] = [to_tree(each) for each in fields]
    return {"nodeSelectorTerms": [term_tree]} if term_tree else None


def _add_new(known: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]) -> None:
    for each in more:
        if not any(_same(each, other) for other in known):
            known.append(each)


def _same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (one.key, one.operator, set(one.values or ())) == (other.key, other.operator, set(other.values or ()))
