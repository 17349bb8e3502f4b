"""The strategy of a built-in kind: the contract of `kinds.resources.Strategy` on the functions of this package.

There is one object for each kind and version; `catalog` makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.app_armor import apply_annotated_profiles
from kubewright.apiserver.builtin.canonical import canonicalize
from kubewright.apiserver.builtin.conversion import convert
from kubewright.apiserver.builtin.defaults import apply_defaults
from kubewright.apiserver.builtin.defaults.workloads import TEMPLATE_GENERATION
from kubewright.apiserver.builtin.field_selectors import field_values, selectable_fields
from kubewright.apiserver.builtin.golang.decoder import check_integer, normalize
from kubewright.apiserver.builtin.preparation.strategies import (
    allows_create_on_update,
    allows_unconditional_update,
    grace_period,
    is_namespaced,
    prepare_for_create,
    prepare_for_update,
)
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.builtin.trees import peek
from kubewright.apiserver.builtin.validation import name_rule, validate_create, validate_update
from kubewright.apiserver.builtin.warnings.kinds import warnings_for
from kubewright.apiserver.kinds.object_meta import validate_metadata
from kubewright.apiserver.kinds.resources import NO_RESERVATION, Reservation, Tree
from kubewright.apiserver.managedfields.reset_fields import ResetFields, reset_fields_of_kind
from kubewright.apiserver.managedfields.types import UNTYPED, FieldType, type_of_kind

__all__ = ("WITHOUT_METADATA_VALIDATION", "BuiltinStrategy")

WITHOUT_METADATA_VALIDATION: Final = frozenset(("Event", "PodDisruptionBudget"))
"""Kinds whose ValidateUpdate does not call ValidateObjectMetaUpdate."""
_VALIDATED_AS_NEW_ONLY: Final = frozenset(("EndpointSlice", "LimitRange"))
_VALIDATED_AS_NEW: Final = _VALIDATED_AS_NEW_ONLY | {
    *("ClusterRole", "ClusterRoleBinding", "ConfigMap", "ControllerRevision", "Endpoints", "Ingress", "Job"),
    *("NetworkPolicy", "PersistentVolumeClaim", "Pod", "Role", "RoleBinding", "Secret", "ServiceAccount"),
}
"""Kinds whose ValidateUpdate also validates the object as on create."""


@final
class BuiltinStrategy:
    """The strategy of one built-in kind. `storage` is the kind in its storage version."""

    strategic_merge_patch = True
    has_conversion_webhook = False

    def __init__(self, kind: GroupVersionKind, storage: GroupVersionKind, services: ServiceAllocator) -> None:
        self._kind = kind
        self._storage = storage
        self._services = services if kind.kind == "Service" and not kind.group else None
        self._namespaced = is_namespaced(kind)
        self._bytes = {"ConfigMap": "binaryData", "Secret": "data"}.get(kind.kind, "")
        self.allow_unconditional_update = allows_unconditional_update(kind)
        self.allow_create_on_update = allows_create_on_update(kind)
        self.selectable_fields = frozenset(selectable_fields(kind))

    @property
    def field_type(self) -> FieldType:
        return type_of_kind(self._kind) or UNTYPED

    def normalize(self, tree: Tree) -> list[str]:
        unknown = normalize(self._kind, tree)
        if self._kind.kind == "DaemonSet" and TEMPLATE_GENERATION in (peek(tree, "metadata", "annotations") or ()):
            # kube-apiserver reads it where it converts a DaemonSet to the internal version.
            check_integer(self._kind, tree["metadata"]["annotations"][TEMPLATE_GENERATION])
        if self._bytes and isinstance(data := tree.get(self._bytes), dict):
            for name, value in data.items():
                if value is None:
                    data[name] = ""  # null is an empty []byte
        return unknown

    def default(self, tree: Tree) -> None:
        apply_defaults(self._kind, tree)

    def prepare_for_create(self, tree: Tree, user: Mapping[str, Any]) -> Sequence[str]:
        prepare_for_create(self._kind, tree, user=user)
        return apply_annotated_profiles(tree) if self._kind.kind == "Pod" else ()

    def prepare_for_update(self, tree: Tree, old: Tree, subresource: str) -> None:
        prepare_for_update(self._kind, tree, old, subresource=subresource)

    def validate(self, tree: Tree) -> list[FieldError]:
        errors = validate_metadata(tree["metadata"], namespaced=self._namespaced, name_errors=name_rule(self._kind))
        return errors + validate_create(self._kind, tree)

    def validate_update(self, tree: Tree, old: Tree, subresource: str) -> list[FieldError]:
        errors = self._metadata_errors(tree["metadata"], old["metadata"])
        return errors + validate_update(self._kind, tree, old, subresource=subresource)

    def _metadata_errors(self, metadata: Tree, old: Tree) -> list[FieldError]:
        """The errors of metadata on an update: as of an update, as of a create, both or none, by the kind."""
        kind = self._kind.kind
        if kind in WITHOUT_METADATA_VALIDATION:
            return []
        rule = name_rule(self._kind)
        errors = validate_metadata(metadata, namespaced=self._namespaced, name_errors=rule, old=old)
        if not errors or kind not in _VALIDATED_AS_NEW:
            return errors
        as_new = validate_metadata(metadata, namespaced=self._namespaced, name_errors=rule)
        if kind in _VALIDATED_AS_NEW_ONLY:
            return as_new or errors
        return [*errors, *as_new]

    def reserve(self, tree: Tree, old: Tree | None, subresource: str) -> Reservation:
        if self._services is None or subresource:
            return NO_RESERVATION
        canonicalize(self._kind, tree)
        return self._services.assign(tree, old)

    def release(self, tree: Tree) -> None:
        if self._services is not None:
            self._services.release(tree)

    def warnings(self, tree: Tree, old: Tree | None) -> list[str]:
        return warnings_for(self._kind, tree, old)

    def field_values(self, tree: Tree) -> Mapping[str, str]:
        return field_values(self._kind, tree)

    def reset_fields(self, subresource: str) -> ResetFields:
        return reset_fields_of_kind(self._kind, subresource)

    def grace_period(self, tree: Tree, requested: int | None) -> int:
        return grace_period(self._kind, tree, requested=requested)

    def convert(self, tree: Tree, api_version: str) -> tuple[Tree, FieldType]:
        kind = GroupVersionKind.of(api_version, self._kind.kind)
        found = type_of_kind(kind)
        if found is None:
            raise LookupError(api_version)
        return self._convert(tree, kind), found

    async def convert_by_webhook(self, tree: Tree, api_version: str) -> tuple[Tree, FieldType]:
        return self.convert(tree, api_version)

    async def to_storage(self, trees: list[Tree]) -> list[Tree]:
        return [self._convert(tree, self._storage) for tree in trees]

    async def from_storage(self, trees: list[Tree]) -> list[Tree]:
        return [self._convert(tree, self._kind) for tree in trees]

    def _convert(self, tree: Tree, to: GroupVersionKind) -> Tree:
        converted: dict[str, Any] = convert(tree, to)
        return converted
