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
from kubewright.api.codec import copy_of, from_tree, to_tree
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
from kubewright.api.resource import Column, KubeObject, Resource, Spec, Status, definition_of
from kubewright.api.scheme import Scheme
from kubewright.api.selectors import FieldSelector, Selector
from kubewright.api.times import Duration, MicroTime

if TYPE_CHECKING:
    from kubewright.cache.changes import Change
    from kubewright.cache.reader import CacheReader
    from kubewright.cache.scope import Scope
    from kubewright.client.client import Client
    from kubewright.client.config.config import Config
    from kubewright.client.connect import connect
    from kubewright.client.lists import ObjectList
    from kubewright.client.watch import Bookmark, WatchEvent
    from kubewright.cluster import Cluster
    from kubewright.controllers.context import Context
    from kubewright.controllers.declaration import Owned, Watch, controller
    from kubewright.controllers.mapping import by_index, for_each
    from kubewright.controllers.permissions import rbac
    from kubewright.controllers.reconcile import Result
    from kubewright.errors import RetryAfter, Terminal
    from kubewright.manager.manager import Manager
    from kubewright.manager.operator import load_operator
    from kubewright.manager.options import ManagerOptions
    from kubewright.manager.process import run
    from kubewright.webhooks.admission.declarations import default, mutate, validate
    from kubewright.webhooks.admission.field_errors import FieldErrors, Warnings
    from kubewright.webhooks.admission.requests import AdmissionRequest
    from kubewright.webhooks.admission.responses import deny
    from kubewright.webhooks.conversion.declarations import convert

__all__ = (
    "UNSET",
    "AdmissionRequest",
    "Bookmark",
    "CacheReader",
    "Change",
    "Client",
    "Cluster",
    "Column",
    "Condition",
    "Config",
    "Context",
    "Duration",
    "Dynamic",
    "DynamicObject",
    "Field",
    "FieldErrors",
    "FieldSelector",
    "GroupVersion",
    "GroupVersionKind",
    "GroupVersionResource",
    "IntOrString",
    "KubeObject",
    "Manager",
    "ManagerOptions",
    "MicroTime",
    "Model",
    "ObjectKey",
    "ObjectList",
    "ObjectMeta",
    "Owned",
    "OwnerReference",
    "Quantity",
    "Resource",
    "Result",
    "RetryAfter",
    "Rule",
    "Scheme",
    "Scope",
    "Selector",
    "Spec",
    "Status",
    "Terminal",
    "Unset",
    "Warnings",
    "Watch",
    "WatchEvent",
    "__version__",
    "by_index",
    "connect",
    "controller",
    "controller_of",
    "convert",
    "copy_of",
    "default",
    "definition_of",
    "deny",
    "field",
    "find_condition",
    "for_each",
    "from_tree",
    "load_operator",
    "metadata_of",
    "mutate",
    "rbac",
    "run",
    "set_condition",
    "set_controller",
    "set_owner",
    "to_tree",
    "validate",
)

_LATER = {
    "AdmissionRequest": "kubewright.webhooks.admission.requests",
    "Bookmark": "kubewright.client.watch",
    "CacheReader": "kubewright.cache.reader",
    "Change": "kubewright.cache.changes",
    "Client": "kubewright.client.client",
    "Cluster": "kubewright.cluster",
    "Config": "kubewright.client.config.config",
    "Context": "kubewright.controllers.context",
    "FieldErrors": "kubewright.webhooks.admission.field_errors",
    "Manager": "kubewright.manager.manager",
    "ManagerOptions": "kubewright.manager.options",
    "ObjectList": "kubewright.client.lists",
    "Owned": "kubewright.controllers.declaration",
    "Result": "kubewright.controllers.reconcile",
    "RetryAfter": "kubewright.errors",
    "Scope": "kubewright.cache.scope",
    "Terminal": "kubewright.errors",
    "Warnings": "kubewright.webhooks.admission.field_errors",
    "Watch": "kubewright.controllers.declaration",
    "WatchEvent": "kubewright.client.watch",
    "by_index": "kubewright.controllers.mapping",
    "connect": "kubewright.client.connect",
    "controller": "kubewright.controllers.declaration",
    "convert": "kubewright.webhooks.conversion.declarations",
    "default": "kubewright.webhooks.admission.declarations",
    "deny": "kubewright.webhooks.admission.responses",
    "for_each": "kubewright.controllers.mapping",
    "load_operator": "kubewright.manager.operator",
    "mutate": "kubewright.webhooks.admission.declarations",
    "rbac": "kubewright.controllers.permissions",
    "run": "kubewright.manager.process",
    "validate": "kubewright.webhooks.admission.declarations",
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
