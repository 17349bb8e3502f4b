"""Kubewright: Kubernetes operators in Python.

The public names, gathered from the layers below; nothing is defined here. Those that need the network are imported
when first used, so that `import kubewright` stays cheap.

    from kubewright import Field, Resource, Spec, Status, connect
    from kubewright.k8s.apps.v1 import Deployment
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kubewright._base.version import __version__
from kubewright.api.codec import copy_of
from kubewright.api.conditions import Condition, find_condition, set_condition
from kubewright.api.dynamic import Dynamic, DynamicObject, metadata_of
from kubewright.api.fields import Field, Rule
from kubewright.api.intorstring import IntOrString
from kubewright.api.kinds import GroupVersion, GroupVersionKind, GroupVersionResource
from kubewright.api.metadata import ObjectMeta, OwnerReference
from kubewright.api.model import UNSET, Model, Unset, field
from kubewright.api.names import ObjectKey
from kubewright.api.owners import controller_of, set_controller, set_owner
from kubewright.api.quantity import Quantity
from kubewright.api.registry import Scheme
from kubewright.api.resource import Column, KubeObject, Resource, Spec, Status, definition_of
from kubewright.api.selectors import FieldSelector, Selector
from kubewright.api.times import Duration, MicroTime

if TYPE_CHECKING:
    from kubewright.client.client import Client
    from kubewright.client.config import Config
    from kubewright.client.connect import connect
    from kubewright.client.lists import ObjectList
    from kubewright.client.watch import Bookmark, WatchEvent
    from kubewright.cluster import Cluster

__all__ = (
    "UNSET",
    "Bookmark",
    "Client",
    "Cluster",
    "Column",
    "Condition",
    "Config",
    "Duration",
    "Dynamic",
    "DynamicObject",
    "Field",
    "FieldSelector",
    "GroupVersion",
    "GroupVersionKind",
    "GroupVersionResource",
    "IntOrString",
    "KubeObject",
    "MicroTime",
    "Model",
    "ObjectKey",
    "ObjectList",
    "ObjectMeta",
    "OwnerReference",
    "Quantity",
    "Resource",
    "Rule",
    "Scheme",
    "Selector",
    "Spec",
    "Status",
    "Unset",
    "WatchEvent",
    "__version__",
    "connect",
    "controller_of",
    "copy_of",
    "definition_of",
    "field",
    "find_condition",
    "metadata_of",
    "set_condition",
    "set_controller",
    "set_owner",
)

_LATER = {
    "Bookmark": "kubewright.client.watch",
    "Client": "kubewright.client.client",
    "Cluster": "kubewright.cluster",
    "Config": "kubewright.client.config",
    "ObjectList": "kubewright.client.lists",
    "WatchEvent": "kubewright.client.watch",
    "connect": "kubewright.client.connect",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'kubewright' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
