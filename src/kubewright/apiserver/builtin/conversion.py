"""Converts objects of built-in kinds between versions, and names their storage version.

Two kinds have versions that differ: HorizontalPodAutoscaler, whose v1 keeps in annotations what it has no fields for,
and Event, whose two groups name its fields differently. All others have one served version, or several with the same
fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubewright.api.kinds import GroupKind, GroupVersionKind
from kubewright.apiserver.builtin import autoscaler_versions
from kubewright.apiserver.builtin.canonical import canonicalize
from kubewright.apiserver.builtin.trees import Tree
from kubewright.k8s.index import MODULES

__all__ = ("convert", "storage_version")

_CORE_EVENT: Final = GroupVersionKind("", "v1", "Event")
_NEW_EVENT: Final = GroupVersionKind("events.k8s.io", "v1", "Event")
_AUTOSCALER: Final = "HorizontalPodAutoscaler"

# The fields of core/v1 Events, and their names in events.k8s.io/v1.
_EVENT_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_OLD_NAMES: Final = {new: old for old, new in _EVENT_NAMES.items()}


def convert(obj: Tree, gvk_to: GroupVersionKind) -> Tree:
    """The object in another version: a new tree that shares unchanged parts, or the object itself."""
    api_version = gvk_to.api_version
    if obj.get("apiVersion") == api_version:
        return obj
    gvk = GroupVersionKind.of(obj.get("apiVersion") or api_version, obj.get("kind") or gvk_to.kind)
    change = _CHANGES.get((gvk, gvk_to))
    converted = change(obj) if change is not None else dict(obj)
    converted["apiVersion"], converted["kind"] = api_version, gvk_to.kind
    if change is not None:
        canonicalize(gvk_to, converted)
    return converted


def storage_version(group_kind: GroupKind) -> str:
    """The apiVersion in which objects of a built-in kind are stored."""
    if group_kind.kind == "Event" and group_kind.group == _NEW_EVENT.group:
        return _CORE_EVENT.api_version
    if group_kind.kind == _AUTOSCALER:
        return "autoscaling/v2"
    versions = [api_version for api_version, (_, kinds) in MODULES.items() if group_kind.kind in kinds]
    mine = [version for version in versions if version.rpartition("/")[0] == group_kind.group]
    stable = [version for version in mine if "alpha" not in version and "beta" not in version]
    return max(stable or mine, default="v1")


def _to_new_event(event: Tree) -> Tree:
    return {_EVENT_NAMES.get(name, name): value for name, value in event.items()}


def _to_core_event(event: Tree) -> Tree:
    return {_OLD_NAMES.get(name, name): value for name, value in event.items()}


_V1: Final = GroupVersionKind("autoscaling", "v1", _AUTOSCALER)
_V2: Final = GroupVersionKind("autoscaling", "v2", _AUTOSCALER)
_CHANGES: Final[Mapping[tuple[GroupVersionKind, GroupVersionKind], Callable[[Tree], Tree]]] = {
    (_CORE_EVENT, _NEW_EVENT): _to_new_event,
    (_NEW_EVENT, _CORE_EVENT): _to_core_event,
    (_V1, _V2): autoscaler_versions.to_v2,
    (_V2, _V1): autoscaler_versions.to_v1,
}
