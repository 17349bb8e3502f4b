"""Kubewright: Kubernetes operators in Python.

    from kubewright import Context, Resource, Spec, Status, controller, run
    from kubewright.k8s.apps.v1 import Deployment

The names that the author of an operator uses every day; each is imported when it is first used, so that `import
kubewright` costs next to nothing. The others are in the packages below: `kubewright.api`, `kubewright.client`,
`kubewright.testing` and so on. What can be imported from here and from those packages is public; the modules below them
are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy
from kubewright._base.version import __version__

if TYPE_CHECKING:
    from kubewright.api import (
        Column,
        Condition,
        Duration,
        Dynamic,
        Field,
        IntOrString,
        Model,
        ObjectKey,
        ObjectMeta,
        Quantity,
        Resource,
        Rule,
        Selector,
        Spec,
        Status,
        controller_of,
        find_condition,
    )
    from kubewright.cache import Scope
    from kubewright.client import Client, Config, connect
    from kubewright.cluster import Cluster
    from kubewright.controllers import (
        Channel,
        Context,
        Owned,
        Result,
        Watch,
        by_index,
        for_each,
        generation_changed,
        on,
        rbac,
        spec_or_metadata_changed,
    )
    from kubewright.controllers.declaration import controller
    from kubewright.errors import AlreadyExists, Conflict, NotFound, RetryAfter, Terminal
    from kubewright.manager import Manager, ManagerOptions, run
    from kubewright.webhooks import AdmissionRequest, FieldErrors, Warnings, convert, default, deny, mutate, validate
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.api": (
                "Column",
                "Condition",
                "Duration",
                "Dynamic",
                "Field",
                "IntOrString",
                "Model",
                "ObjectKey",
                "ObjectMeta",
                "Quantity",
                "Resource",
                "Rule",
                "Selector",
                "Spec",
                "Status",
                "controller_of",
                "find_condition",
            ),
            "kubewright.cache": ("Scope",),
            "kubewright.client": ("Client", "Config", "connect"),
            "kubewright.cluster": ("Cluster",),
            "kubewright.controllers": (
                "Channel",
                "Context",
                "Owned",
                "Result",
                "Watch",
                "by_index",
                "for_each",
                "generation_changed",
                "on",
                "rbac",
                "spec_or_metadata_changed",
            ),
            "kubewright.controllers.declaration": ("controller",),
            "kubewright.errors": ("AlreadyExists", "Conflict", "NotFound", "RetryAfter", "Terminal"),
            "kubewright.manager": ("Manager", "ManagerOptions", "run"),
            "kubewright.webhooks": (
                "AdmissionRequest",
                "FieldErrors",
                "Warnings",
                "convert",
                "default",
                "deny",
                "mutate",
                "validate",
            ),
        },
    )

__all__ = (
    "AdmissionRequest",
    "AlreadyExists",
    "Channel",
    "Client",
    "Cluster",
    "Column",
    "Condition",
    "Config",
    "Conflict",
    "Context",
    "Duration",
    "Dynamic",
    "Field",
    "FieldErrors",
    "IntOrString",
    "Manager",
    "ManagerOptions",
    "Model",
    "NotFound",
    "ObjectKey",
    "ObjectMeta",
    "Owned",
    "Quantity",
    "Resource",
    "Result",
    "RetryAfter",
    "Rule",
    "Scope",
    "Selector",
    "Spec",
    "Status",
    "Terminal",
    "Warnings",
    "Watch",
    "__version__",
    "by_index",
    "connect",
    "controller",
    "controller_of",
    "convert",
    "default",
    "deny",
    "find_condition",
    "for_each",
    "generation_changed",
    "mutate",
    "on",
    "rbac",
    "run",
    "spec_or_metadata_changed",
    "validate",
)
