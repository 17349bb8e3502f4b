"""The object model: kinds as classes, the values they are made of, and patches between objects. Plain data, no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy

if TYPE_CHECKING:
    from kubewright.api.codec import copy_of, from_tree, problems_of, to_tree
    from kubewright.api.conditions import Condition, find_condition, is_true, remove_condition, set_condition
    from kubewright.api.dynamic import Dynamic, DynamicObject, metadata_of
    from kubewright.api.field_errors import FieldError
    from kubewright.api.fields import Field, Rule
    from kubewright.api.intorstring import IntOrString, is_percent, scaled_value
    from kubewright.api.kinds import GroupVersion, GroupVersionKind, GroupVersionResource
    from kubewright.api.metadata import ObjectMeta, OwnerReference
    from kubewright.api.model import UNSET, Model, Unset, field
    from kubewright.api.names import (
        ObjectKey,
        dns1035_label_errors,
        dns1123_label_errors,
        dns1123_subdomain_errors,
        label_value_errors,
        qualified_name_errors,
    )
    from kubewright.api.owners import controller_of, is_controlled_by, set_controller, set_owner
    from kubewright.api.quantity import Quantity
    from kubewright.api.resource import Column, Definition, KubeObject, Resource, Scale, Spec, Status, definition_of
    from kubewright.api.scheme import Scheme
    from kubewright.api.selectors import FieldSelector, Selector
    from kubewright.api.times import Duration, MicroTime
    from kubewright.api.unknown_values import UnknownValue, enum_of
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.api.codec": ("copy_of", "from_tree", "problems_of", "to_tree"),
            "kubewright.api.field_errors": ("FieldError",),
            "kubewright.api.unknown_values": ("UnknownValue", "enum_of"),
            "kubewright.api.conditions": (
                "Condition",
                "find_condition",
                "is_true",
                "remove_condition",
                "set_condition",
            ),
            "kubewright.api.dynamic": ("Dynamic", "DynamicObject", "metadata_of"),
            "kubewright.api.fields": ("Field", "Rule"),
            "kubewright.api.intorstring": ("IntOrString", "is_percent", "scaled_value"),
            "kubewright.api.kinds": ("GroupVersion", "GroupVersionKind", "GroupVersionResource"),
            "kubewright.api.metadata": ("ObjectMeta", "OwnerReference"),
            "kubewright.api.model": ("UNSET", "Model", "Unset", "field"),
            "kubewright.api.names": (
                "ObjectKey",
                "dns1035_label_errors",
                "dns1123_label_errors",
                "dns1123_subdomain_errors",
                "label_value_errors",
                "qualified_name_errors",
            ),
            "kubewright.api.owners": ("controller_of", "is_controlled_by", "set_controller", "set_owner"),
            "kubewright.api.quantity": ("Quantity",),
            "kubewright.api.resource": (
                "Column",
                "Definition",
                "KubeObject",
                "Resource",
                "Scale",
                "Spec",
                "Status",
                "definition_of",
            ),
            "kubewright.api.scheme": ("Scheme",),
            "kubewright.api.selectors": ("FieldSelector", "Selector"),
            "kubewright.api.times": ("Duration", "MicroTime"),
        },
    )

__all__ = (
    "UNSET",
    "Column",
    "Condition",
    "Definition",
    "Duration",
    "Dynamic",
    "DynamicObject",
    "Field",
    "FieldError",
    "FieldSelector",
    "GroupVersion",
    "GroupVersionKind",
    "GroupVersionResource",
    "IntOrString",
    "KubeObject",
    "MicroTime",
    "Model",
    "ObjectKey",
    "ObjectMeta",
    "OwnerReference",
    "Quantity",
    "Resource",
    "Rule",
    "Scale",
    "Scheme",
    "Selector",
    "Spec",
    "Status",
    "UnknownValue",
    "Unset",
    "controller_of",
    "copy_of",
    "definition_of",
    "dns1035_label_errors",
    "dns1123_label_errors",
    "dns1123_subdomain_errors",
    "enum_of",
    "field",
    "find_condition",
    "from_tree",
    "is_controlled_by",
    "is_percent",
    "is_true",
    "label_value_errors",
    "metadata_of",
    "problems_of",
    "qualified_name_errors",
    "remove_condition",
    "scaled_value",
    "set_condition",
    "set_controller",
    "set_owner",
    "to_tree",
)
