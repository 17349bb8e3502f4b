"""The versions of a CRD, compiled: schema, validator, pruner, defaulter, columns, subresources, deprecation.

    for version in versions_of(crd):
        version.pruner.prune(tree)

A version is frozen; what is compiled from its schema is compiled on first use, or by `compile` for a large schema.
`controllers.crds` makes them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.kinds.resources import Column, Scale
from kubewright.schema.check.defaulting import Defaulter, compile_defaults
from kubewright.schema.check.metadata_coercion import coerce_embedded
from kubewright.schema.check.pruning import Pruner, compile_pruning
from kubewright.schema.check.validation import Validator, compile_schema

__all__ = ("CustomVersion", "version_rank", "versions_of")

_KUBE_VERSION: Final = re.compile("v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_AGE: Final = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)


@final
@dataclass(frozen=True, kw_only=True)
class CustomVersion:
    """One version of a CRD."""

    gvk: GroupVersionKind
    namespaced: bool
    served: bool
    storage: bool
    schema: Mapping[str, Any]
    """The schema with its defaults pruned; empty if the version has none."""
    preserves_unknown: bool
    """spec.preserveUnknownFields, which only CRDs of v1beta1 could set: nothing is pruned."""
    has_status: bool
    scale: Scale | None
    columns: tuple[Column, ...]
    selectable_fields: tuple[str, ...]
    """Paths without the leading dot, as in field selectors."""
    deprecated: bool
    warning: str
    """The warning to clients of a deprecated version; empty if it is not deprecated."""

    @cached_property
    def validator(self) -> Validator:
        """Validates whole objects."""
        return compile_schema(self.schema)

    @cached_property
    def status_validator(self) -> Validator:
        """Validates the status."""
        return compile_schema((self.schema.get("properties") or {}).get("status") or {})

    @cached_property
    def pruner(self) -> Pruner:
        """Drops unknown fields."""
        return compile_pruning(
            {"x-kubernetes-preserve-unknown-fields": True} if self.preserves_unknown else self.schema
        )

    @cached_property
    def defaulter(self) -> Defaulter:
        """Sets defaults."""
        return compile_defaults(self.schema)

    def compile(self) -> None:
        """Compile now what the first requests would compile; for a large schema not on the event loop."""
        for _ in (self.validator, self.status_validator, self.pruner, self.defaulter):
            pass


def versions_of(crd: Mapping[str, Any]) -> tuple[CustomVersion, ...]:
    """All versions of a valid CRD, served or not, in its order."""
    spec = crd["spec"]
    return tuple(_version(spec, version) for version in spec.get("versions") or ())


def _version(spec: Mapping[str, Any], version: Mapping[str, Any]) -> CustomVersion:
    gvk = GroupVersionKind(spec["group"], version["name"], spec["names"]["kind"])
    subresources = version.get("subresources") or {}
    deprecated = bool(version.get("deprecated"))
    return CustomVersion(
        gvk=gvk,
        namespaced=spec.get("scope") == "Namespaced",
        served=bool(version.get("served")),
        storage=bool(version.get("storage")),
        schema=_with_pruned_defaults((version.get("schema") or {}).get("openAPIV3Schema") or {}),
        preserves_unknown=bool(spec.get("preserveUnknownFields")),
        has_status=subresources.get("status") is not None,
        scale=_scale(subresources.get("scale")),
        columns=_columns(version.get("additionalPrinterColumns") or ()),
        selectable_fields=tuple(one["jsonPath"].removeprefix(".") for one in version.get("selectableFields") or ()),
        deprecated=deprecated,
        warning=_warning(gvk, version, spec) if deprecated else "",
    )


def _warning(gvk: GroupVersionKind, version: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """The CRD's deprecationWarning, or the default one, which names a newer served version."""
    if (text := version.get("deprecationWarning")) is not None:
        return str(text)
    names = [one["name"] for one in spec["versions"] if one.get("served") and not one.get("deprecated")]
    newest = max(names, key=version_rank, default=gvk.version)
    advice = f"; use {gvk.group}/{newest} {gvk.kind}" if version_rank(newest) > version_rank(gvk.version) else ""
    return f"{gvk.group}/{gvk.version} {gvk.kind} is deprecated{advice}"


def version_rank(name: str) -> tuple[Any, ...]:
    """The sort key of versions by priority: v2, v1, v1beta2, v1alpha1, then all other names.

    `CompareKubeAwareVersionStrings` of k8s.io/apimachinery/pkg/version/helpers.go.
    """
    found = _KUBE_VERSION.fullmatch(name)
    if found is None:
        # Other names are in alphabetical order, the first is the highest.
        return 0, [*(-ord(char) for char in name), 1]
    stability = {None: 3, "beta": 2, "alpha": 1}[found[2]]
    return 1, stability, int(found[1]), int(found[3] or 0)


def _scale(scale: Mapping[str, Any] | None) -> Scale | None:
    if scale is None:
        return None
    return Scale(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath"))


def _columns(columns: Any) -> tuple[Column, ...]:
    if not columns:
        return (Column("Age", "date", ".metadata.creationTimestamp", description=_AGE),)
    return tuple(
        Column(
            one["name"],
            one["type"],
            one["jsonPath"],
            format=one.get("format") or "",
            description=one.get("description") or "",
            priority=one.get("priority") or 0,
        )
        for one in columns
    )


def _with_pruned_defaults(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with pruned defaults; only CRDs from before the validation of defaults have unpruned ones."""
    pruned: dict[str, Any] = dict(schema)
    if isinstance(default := schema.get("default"), dict | list):
        pruned["default"] = default = copy.deepcopy(default)
        compile_pruning(schema).prune(default, root=bool(schema.get("x-kubernetes-embedded-resource")))
        coerce_embedded(default, schema)
    if properties := schema.get("properties"):
        pruned["properties"] = {name: _with_pruned_defaults(child) for name, child in properties.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(child := schema.get(key), Mapping):
            pruned[key] = _with_pruned_defaults(child)
    return pruned
