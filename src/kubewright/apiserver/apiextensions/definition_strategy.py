"""The strategy of CustomResourceDefinition: that of a built-in kind, with the defaults and validation of `definitions`.

Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.apiextensions.cel_rules import validate_rules
from kubewright.apiserver.apiextensions.definitions.decoding import normalize_crd
from kubewright.apiserver.apiextensions.definitions.defaults import (
    add_stored_version,
    default_crd,
    prepare_for_create,
    prepare_for_update,
)
from kubewright.apiserver.apiextensions.definitions.validation import format_warnings, validate_crd, validate_crd_status
from kubewright.apiserver.builtin.canonical import encode
from kubewright.apiserver.builtin.strategy import BuiltinStrategy
from kubewright.apiserver.kinds.resources import NO_RESERVATION, Reservation, Tree
from kubewright.apiserver.managedfields.reset_fields import ResetFields
from kubewright.apiserver.managedfields.types import FieldType

__all__ = ("DefinitionStrategy",)

_KIND: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


@final
class DefinitionStrategy:
    """The strategy of CustomResourceDefinitions."""

    strategic_merge_patch = True
    has_conversion_webhook = False
    allow_unconditional_update = False
    allow_create_on_update = False

    def __init__(self, inner: BuiltinStrategy) -> None:
        self._inner = inner
        self.selectable_fields = inner.selectable_fields

    @property
    def field_type(self) -> FieldType:
        return self._inner.field_type

    def normalize(self, tree: Tree) -> list[str]:
        return normalize_crd(tree)

    def default(self, tree: Tree) -> None:
        default_crd(tree)
        encode(_KIND, tree)

    def prepare_for_create(self, tree: Tree, user: Mapping[str, Any]) -> Sequence[str]:
        prepare_for_create(tree)
        add_stored_version(tree)
        encode(_KIND, tree)
        return ()

    def prepare_for_update(self, tree: Tree, old: Tree, subresource: str) -> None:
        if subresource == "status":
            for name in ("spec", "metadata"):
                managed = tree["metadata"].get("managedFields") if name == "metadata" else None
                tree[name] = dict(old[name])
                if managed is not None:
                    tree[name]["managedFields"] = managed
            return
        prepare_for_update(tree, old)
        add_stored_version(tree)
        encode(_KIND, tree)

    def validate(self, tree: Tree) -> list[FieldError]:
        return validate_crd(tree, validate_rules=_validate_rules)

    def validate_update(self, tree: Tree, old: Tree, subresource: str) -> list[FieldError]:
        if subresource == "status":
            return validate_crd_status(tree, old)
        return validate_crd(tree, old, validate_rules=_validate_rules)

    def reserve(self, tree: Tree, old: Tree | None, subresource: str) -> Reservation:
        return NO_RESERVATION

    def release(self, tree: Tree) -> None:
        return None

    def warnings(self, tree: Tree, old: Tree | None) -> list[str]:
        return format_warnings(tree, old)

    def field_values(self, tree: Tree) -> Mapping[str, str]:
        return {}

    def reset_fields(self, subresource: str) -> ResetFields:
        return self._inner.reset_fields(subresource)

    def grace_period(self, tree: Tree, requested: int | None) -> int:
        return 0

    def convert(self, tree: Tree, api_version: str) -> tuple[Tree, FieldType]:
        raise LookupError(api_version)

    async def convert_by_webhook(self, tree: Tree, api_version: str) -> tuple[Tree, FieldType]:
        return self.convert(tree, api_version)

    async def to_storage(self, trees: list[Tree]) -> list[Tree]:
        return trees

    async def from_storage(self, trees: list[Tree]) -> list[Tree]:
        return trees


def _validate_rules(schema: Mapping[str, Any], path: str) -> list[FieldError]:
    return validate_rules(schema, path=path)
