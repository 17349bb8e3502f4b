"""The strategy of custom resources; there is one for each served version of a CRD.

`versions` compiles the schema, `objects` decodes and validates, `cel_rules` evaluates the rules. This ties them
together and prepares writes: which fields an endpoint resets, and when the generation increases. Upstream:
k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go and status_strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Protocol, final

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import json_equal
from kubewright.apiserver.apiextensions.cel_rules import CelValidator, compile_rules
from kubewright.apiserver.apiextensions.objects import (
    ValidateRules,
    decode_custom_resource,
    validate_custom_resource,
    validate_custom_resource_status,
)
from kubewright.apiserver.apiextensions.versions import CustomVersion
from kubewright.apiserver.kinds.object_meta import finalizer_warnings
from kubewright.apiserver.kinds.resources import NO_RESERVATION, Reservation, Resource, Tree
from kubewright.apiserver.managedfields.reset_fields import ResetFields, reset_fields_of_custom_kind
from kubewright.apiserver.managedfields.types import FieldType, type_of_schema
from kubewright.apiserver.wire.status_errors import bad_request, internal_error, too_large
from kubewright.schema.check.defaulting import DefaultsTooLargeError
from kubewright.schema.check.metadata_coercion import MetadataDecodeError

__all__ = ("Converter", "CustomResourceStrategy", "version_of")

_GENERAL: Final = ("metadata", "apiVersion", "kind")


class Converter(Protocol):
    """Converts objects of a CRD between its versions."""

    async def convert(self, trees: list[Tree], api_version: str) -> list[Tree]:
        """The objects in that version."""
        ...


@final
class CustomResourceStrategy:
    """The strategy of one version of a custom resource."""

    strategic_merge_patch = False
    allow_unconditional_update = False
    allow_create_on_update = False

    def __init__(
        self,
        version: CustomVersion,
        *,
        kind: GroupVersionKind,
        storage_version: str,
        converter: Converter | None,
        field_types: Mapping[str, FieldType] | None = None,
    ) -> None:
        """`field_types` are the field types of all versions, by apiVersion."""
        self._version = version
        self._kind = kind
        self._storage_version = storage_version
        self._converter = converter
        self._field_types = field_types or {}
        self.has_conversion_webhook = converter is not None
        self.selectable_fields = frozenset(version.selectable_fields)

    @property
    def version(self) -> CustomVersion:
        """The version of the CRD."""
        return self._version

    @cached_property
    def field_type(self) -> FieldType:
        found = self._field_types.get(self._kind.api_version)
        return found or type_of_schema(self._version.schema, preserve_unknown=self._version.preserves_unknown)

    @cached_property
    def _rules(self) -> CelValidator:
        return compile_rules(self._version.schema)

    def compile(self) -> None:
        """Compile now what the first requests would compile; for a large schema not on the event loop."""
        self._version.compile()
        bool(self._rules)

    def normalize(self, tree: Tree) -> list[str]:
        try:
            return decode_custom_resource(tree, self._version)
        except DefaultsTooLargeError as exc:
            raise too_large(f"Request entity too large: {exc}") from None
        except MetadataDecodeError as exc:
            kind = self._kind
            raise bad_request(
                f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {exc}'
            ) from None

    def default(self, tree: Tree) -> None:
        return None  # `normalize` sets the defaults

    def prepare_for_create(self, tree: Tree, user: Mapping[str, Any]) -> Sequence[str]:
        if self._version.has_status:
            tree.pop("status", None)
        tree["metadata"]["generation"] = 1
        return ()

    def prepare_for_update(self, tree: Tree, old: Tree, subresource: str) -> None:
        if subresource == "status":
            self._restore_all_but_status(tree, old)
            return
        if self._version.has_status:
            _restore(tree, old, "status")
        ignored = (*_GENERAL, "status") if self._version.has_status else _GENERAL
        generation = old["metadata"].get("generation") or 0
        same = json_equal(_without(tree, ignored), _without(old, ignored))
        tree["metadata"]["generation"] = generation if same else generation + 1

    def _restore_all_but_status(self, tree: Tree, old: Tree) -> None:
        status = tree.get("status")
        managed = tree["metadata"].get("managedFields")
        tree.clear()
        tree.update(old)
        tree["metadata"] = {name: value for name, value in old["metadata"].items() if name != "managedFields"}
        if managed is not None:
            tree["metadata"]["managedFields"] = managed
        tree.pop("status", None)
        if status is not None:
            tree["status"] = status

    def validate(self, tree: Tree) -> list[FieldError]:
        return validate_custom_resource(tree, self._version, rules=self._validate_rules)

    def validate_update(self, tree: Tree, old: Tree, subresource: str) -> list[FieldError]:
        if subresource == "status":
            return validate_custom_resource_status(tree, self._version, old=old, rules=self._validate_rules)
        return validate_custom_resource(tree, self._version, old=old, rules=self._validate_rules)

    @property
    def _validate_rules(self) -> ValidateRules | None:
        return self._rules.check if self._rules else None

    def reserve(self, tree: Tree, old: Tree | None, subresource: str) -> Reservation:
        return NO_RESERVATION

    def release(self, tree: Tree) -> None:
        return None

    def warnings(self, tree: Tree, old: Tree | None) -> list[str]:
        return finalizer_warnings(tree["metadata"], old=old["metadata"] if old else None)

    def field_values(self, tree: Tree) -> Mapping[str, str]:
        return {name: _text(_at(tree, name.split("."))) for name in self.selectable_fields}

    def reset_fields(self, subresource: str) -> ResetFields:
        return reset_fields_of_custom_kind(subresource, has_status=self._version.has_status)

    def grace_period(self, tree: Tree, requested: int | None) -> int:
        return 0

    def convert(self, tree: Tree, api_version: str) -> tuple[Tree, FieldType]:
        if self._converter is not None:
            raise LookupError(api_version)  # needs the webhook: `convert_by_webhook`
        return {**tree, "apiVersion": api_version}, self._field_types[api_version]

    async def convert_by_webhook(self, tree: Tree, api_version: str) -> tuple[Tree, FieldType]:
        found = self._field_types[api_version]  # first: do not call the webhook for a version that does not exist
        if tree.keys() <= {"apiVersion", "kind"}:
            return {**tree, "apiVersion": api_version}, found  # as kube-apiserver: there is nothing to convert
        (converted,) = await self._convert_all([tree], api_version)
        return converted, found

    async def to_storage(self, trees: list[Tree]) -> list[Tree]:
        return await self._convert_all(trees, self._storage_version)

    async def from_storage(self, trees: list[Tree]) -> list[Tree]:
        found = await self._convert_all(trees, self._kind.api_version)
        for tree in found:
            self._version.pruner.prune(tree)
            try:
                self._version.defaulter.apply(tree)
            except DefaultsTooLargeError as exc:  # the CRD has changed since the object was written
                raise internal_error(f"{tree['metadata'].get('name')}: {exc}") from None
        return found

    async def _convert_all(self, trees: list[Tree], api_version: str) -> list[Tree]:
        wrong = [index for index, tree in enumerate(trees) if tree.get("apiVersion") != api_version]
        if not wrong:
            return trees
        if self._converter is None:
            for index in wrong:
                trees[index]["apiVersion"] = api_version
            return trees
        converted = await self._converter.convert([trees[index] for index in wrong], api_version)
        for index, tree in zip(wrong, converted, strict=True):
            trees[index] = tree
        return trees


def _without(tree: Tree, names: Sequence[str]) -> Tree:
    return {name: value for name, value in tree.items() if name not in names}


def _restore(tree: Tree, old: Tree, name: str) -> None:
    if name in old:
        tree[name] = old[name]
    else:
        tree.pop(name, None)


def _at(tree: Any, path: list[str]) -> Any:
    for step in path:
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def version_of(resource: Resource) -> CustomVersion:
    """The CRD version of a custom resource."""
    strategy = resource.strategy
    assert isinstance(strategy, CustomResourceStrategy)
    return strategy.version
