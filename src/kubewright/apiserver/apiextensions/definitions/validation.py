"""Validates a CustomResourceDefinition, new or updated, with kube-apiserver's errors in its order.

The CRD has its defaults and its status (`defaults`). `validate_rules`, which compiles the CEL rules, is called for each
schema without other errors. It follows
k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kubewright.api.field_errors import FieldError, bad_value, too_many, unsupported
from kubewright.api.go_text import quoted
from kubewright.api.names import dns1035_label_errors, dns1123_subdomain_errors
from kubewright.apiserver.apiextensions.definitions.approval import approval_errors
from kubewright.apiserver.apiextensions.definitions.conditions import is_established
from kubewright.apiserver.apiextensions.definitions.conversion import (
    accepts_known_review_version,
    conversion_errors,
    is_valid_ca_bundle,
)
from kubewright.apiserver.apiextensions.definitions.default_validation import default_errors, has_unpruned_defaults
from kubewright.apiserver.apiextensions.definitions.internal_version import (
    InternalSpec,
    schema_struct,
    set_fields,
    to_internal_spec,
    versions_struct,
)
from kubewright.apiserver.apiextensions.definitions.openapi_schema import (
    ListRules,
    has_invalid_set_items,
    has_unsupported_type,
    keyword_errors,
    list_map_errors,
    schemas_in,
)
from kubewright.apiserver.apiextensions.definitions.structural_schema import (
    structural_conversion_error,
    structural_errors,
)
from kubewright.apiserver.apiextensions.definitions.version_fields import (
    column_errors,
    selectable_errors,
    subresource_errors,
    warning_errors,
)
from kubewright.apiserver.kinds.object_meta import subdomain_errors, validate_metadata
from kubewright.schema.check.formats import is_known

__all__ = ("ValidateSchemaRules", "format_warnings", "validate_crd", "validate_crd_status")

_Json: TypeAlias = Mapping[str, Any]
ValidateSchemaRules: TypeAlias = Callable[[_Json, str], list[FieldError]]
"""The errors of the rules in a schema, given the path of that schema."""

_SCOPES: Final = ("Cluster", "Namespaced")
_AT_ROOT: Final = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations"
)

_WITH_STATUS: Final = "at the root of the schema if the status subresource is enabled"
_MAX_VERSIONS: Final = 1_000
"""Each is served, with a schema and documents of its own. kube-apiserver has no limit."""
_ALL_LIST_RULES: Final = ListRules()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Options:
    """Requirements of a CRD. Ratcheting: an update need not meet one that the stored CRD does not meet.

    Requirements were added over the years; without ratcheting, an older CRD could not be updated any more.
    """

    known_review_version: bool = True
    fixed_names: bool = False
    schema_needed: bool = True
    structural: bool = True
    pruned_defaults: bool = True
    lists: ListRules = _ALL_LIST_RULES
    valid_ca_bundle: bool = False
    many_selectable: frozenset[str] = frozenset()
    validate_rules: ValidateSchemaRules | None = None


def validate_crd(
    crd: _Json, old: _Json | None = None, *, validate_rules: ValidateSchemaRules | None = None
) -> list[FieldError]:
    """The errors of a CRD, or of its update; nothing is changed."""
    spec, metadata = crd.get("spec") or {}, crd.get("metadata") or {}
    if (count := len(spec.get("versions") or ())) > _MAX_VERSIONS:
        return [too_many("spec.versions", count, _MAX_VERSIONS)]
    if old is None:
        options = _Options(validate_rules=validate_rules)
        found = validate_metadata(metadata, namespaced=False, name_errors=_name_validator(spec))
    else:
        options = _options_for(crd, old, validate_rules)
        found = validate_metadata(metadata, namespaced=False, old=old.get("metadata") or {})
    found.extend(_spec(spec, options))
    if old is not None:
        found.extend(_immutable(spec, old.get("spec") or {}, options))
    status = crd.get("status") or {}
    found.extend(_names(status.get("acceptedNames") or {}, "status.acceptedNames"))
    found.extend(_stored_versions(status.get("storedVersions") or [], spec.get("versions") or []))
    found.extend(approval_errors(crd, old))
    if spec.get("preserveUnknownFields") and not ((old or {}).get("spec") or {}).get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        found.append(bad_value("spec.preserveUnknownFields", "Invalid", True, text))
    return found


def validate_crd_status(crd: _Json, old: _Json) -> list[FieldError]:
    """The errors of an update of a CRD's status."""
    found = validate_metadata(crd.get("metadata") or {}, namespaced=False, old=old.get("metadata") or {})
    names = (crd.get("status") or {}).get("acceptedNames") or {}
    return [*found, *_names(names, "status.acceptedNames")]


def format_warnings(crd: _Json, old: _Json | None = None) -> list[str]:
    """A warning for each unrecognized format that the stored CRD does not have."""
    before = set(_unknown_formats((old or {}).get("spec") or {}))
    return [
        f"unrecognized format {quoted(name)}" for name in _unknown_formats(crd.get("spec") or {}) if name not in before
    ]


def _unknown_formats(spec: _Json) -> list[str]:
    return [
        schema["format"]
        for root in _schemas_of(to_internal_spec(spec))
        for schema in schemas_in(root)
        if schema.get("format") and schema.get("type") == "string" and not is_known(schema["format"])
    ]


def _schemas_of(internal: InternalSpec) -> list[_Json]:
    holders = [internal.shared.get("schema"), *(version.get("schema") for version in internal.versions)]
    schemas = [(holder or {}).get("openAPIV3Schema") for holder in holders]
    return [schema for schema in schemas if schema is not None]


def _name_validator(spec: _Json) -> Callable[[str, bool], list[str]]:
    wanted = f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}"

    def errors(name: str, prefix: bool) -> list[str]:
        texts = subdomain_errors(name, prefix)
        return texts if name == wanted else [*texts, 'must be spec.names.plural+"."+spec.group']

    return errors


def _options_for(crd: _Json, old: _Json, validate_rules: ValidateSchemaRules | None) -> _Options:
    spec = old.get("spec") or {}
    internal = to_internal_spec(spec)
    roots = _schemas_of(internal)
    every = [schema for root in roots for schema in schemas_in(root)]
    established, client = is_established(old), ((spec.get("conversion") or {}).get("webhook") or {}).get("clientConfig")
    bundle = (client or {}).get("caBundle")
    return _Options(
        known_review_version=accepts_known_review_version(spec.get("conversion")),
        fixed_names=established,
        schema_needed=all(((one.get("schema") or {}).get("openAPIV3Schema")) for one in spec.get("versions") or ()),
        structural=not (crd.get("spec") or {}).get("preserveUnknownFields")
        or not any(structural_conversion_error(root) or structural_errors(root, "") for root in roots),
        pruned_defaults=not any(has_unpruned_defaults(root) for root in roots if not structural_conversion_error(root)),
        lists=ListRules(
            types=not any(has_unsupported_type(schema) for schema in every),
            atomic_sets=not any(has_invalid_set_items(schema) for schema in every),
            map_keys=not any(list_map_errors(schema, "") for schema in every),
        ),
        valid_ca_bundle=established and (not bundle or is_valid_ca_bundle(bundle)),
        many_selectable=_many_selectable(to_internal_spec(crd.get("spec") or {}), internal),
        validate_rules=validate_rules,
    )


def _many_selectable(new: InternalSpec, old: InternalSpec) -> frozenset[str]:
    """The versions, with an empty name for the top level, whose selectable fields are too many but unchanged."""
    before = {one.get("name"): one.get("selectableFields") for one in old.versions}
    before[""] = old.shared.get("selectableFields")
    now = [(one.get("name"), one.get("selectableFields")) for one in new.versions]
    now.append(("", new.shared.get("selectableFields")))
    return frozenset(str(name) for name, fields in now if fields and len(fields) > 8 and before.get(name) == fields)


def _spec(spec: _Json, options: _Options) -> list[FieldError]:
    internal, path = to_internal_spec(spec), "spec"
    found = _group_and_scope(spec)
    if options.schema_needed and (internal.shared.get("schema") or {}).get("openAPIV3Schema") is None:
        found.extend(
            FieldError(f"{path}.versions[{i}].schema.openAPIV3Schema", "Required")
            for i, version in enumerate(internal.versions)
            if (version.get("schema") or {}).get("openAPIV3Schema") is None
        )
    found.extend(_preserving_with_defaults(spec, internal))
    for i, version in enumerate(internal.versions):
        here = f"{path}.versions[{i}]"
        if texts := dns1035_label_errors(version.get("name") or ""):
            found.append(bad_value(f"{here}.name", "Invalid", version.get("name") or "", ",".join(texts)))
        found.extend(_version(version, internal.shared.get("subresources"), here, options))
    found.extend(
        _versions_together(internal, versions_struct(internal.versions) if spec.get("versions") is not None else None)
    )
    names = spec.get("names") or {}
    required = (f"{path}.names.{name}" for name in ("plural", "singular", "kind", "listKind") if not names.get(name))
    found.extend(FieldError(where, "Required") for where in required)
    found.extend(_names(names, f"{path}.names"))
    found.extend(_shared(internal, path, options))
    strategy = (spec.get("conversion") or {}).get("strategy", "None")
    if spec.get("preserveUnknownFields") and strategy != "None":
        text = "must be None if spec.preserveUnknownFields is true"
        found.append(bad_value(f"{path}.conversion.strategy", "Invalid", strategy, text))
    found.extend(
        conversion_errors(
            spec.get("conversion"),
            f"{path}.conversion",
            known_review_version=options.known_review_version,
            valid_ca_bundle=options.valid_ca_bundle,
        )
    )
    return found


def _group_and_scope(spec: _Json) -> list[FieldError]:
    found: list[FieldError] = []
    group, scope = spec.get("group") or "", spec.get("scope") or ""
    if not group:
        found.append(FieldError("spec.group", "Required"))
    elif texts := dns1123_subdomain_errors(group):
        found.append(bad_value("spec.group", "Invalid", group, ",".join(texts)))
    elif "." not in group:
        found.append(bad_value("spec.group", "Invalid", group, "should be a domain with at least one dot"))
    if not scope:
        found.append(FieldError("spec.scope", "Required"))
    elif scope not in _SCOPES:
        found.append(unsupported("spec.scope", scope, _SCOPES))
    return found


def _preserving_with_defaults(spec: _Json, internal: InternalSpec) -> list[FieldError]:
    if not spec.get("preserveUnknownFields"):
        return []
    if not any(schema.get("default") is not None for root in _schemas_of(internal) for schema in schemas_in(root)):
        return []
    text = "must be false in order to use defaults in the schema"
    return [bad_value("spec.preserveUnknownFields", "Invalid", True, text)]


def _version(version: _Json, shared_subresources: _Json | None, path: str, options: _Options) -> list[FieldError]:
    found = warning_errors(version, path)
    subresources = version.get("subresources") if shared_subresources is None else shared_subresources
    found.extend(_validation(version.get("schema"), _has_status(subresources), f"{path}.schema", options))
    found.extend(subresource_errors(version.get("subresources"), f"{path}.subresources"))
    for i, column in enumerate(version.get("additionalPrinterColumns") or ()):
        found.extend(column_errors(column, f"{path}.additionalPrinterColumns[{i}]"))
    if fields := version.get("selectableFields"):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        here = f"{path}.selectableFields"
        if schema is None:
            text = "may only be set when `version.schema.openAPIV3Schema` is not included"
            found.append(bad_value(here, "Invalid", "", text))
        else:
            found.extend(selectable_errors(fields, schema, here, any_number=version["name"] in options.many_selectable))
    return found


def _shared(internal: InternalSpec, path: str, options: _Options) -> list[FieldError]:
    """The errors of what all versions share, with the field names of the internal version."""
    shared = internal.shared
    holders = (shared.get("subresources"), *(version.get("subresources") for version in internal.versions))
    found = _validation(shared.get("schema"), any(map(_has_status, holders)), f"{path}.validation", options)
    found.extend(subresource_errors(shared.get("subresources"), f"{path}.subresources"))
    for i, column in enumerate(shared.get("additionalPrinterColumns") or ()):
        found.extend(column_errors(column, f"{path}.additionalPrinterColumns[{i}]"))
    if fields := shared.get("selectableFields"):
        here = f"{path}.selectableFields"
        if shared.get("schema") is None:
            found.append(bad_value(here, "Invalid", "", "may only be set when validations.schema is included"))
        else:
            schema = shared["schema"].get("openAPIV3Schema") or {}
            found.extend(selectable_errors(fields, schema, here, any_number="" in options.many_selectable))
    return found


def _has_status(subresources: _Json | None) -> bool:
    return (subresources or {}).get("status") is not None


def _validation(holder: _Json | None, has_status: bool, path: str, options: _Options) -> list[FieldError]:
    schema = (holder or {}).get("openAPIV3Schema")
    if schema is None:
        return []
    here = f"{path}.openAPIV3Schema"
    found = _root_errors(schema, here) if has_status else []
    if schema.get("nullable"):
        found.append(FieldError(f"{here}.nullable", "Forbidden", "nullable cannot be true at the root"))
    error = structural_conversion_error(schema) if options.structural else None
    structural = options.structural and error is None
    if structural:
        errors = structural_errors(schema, here)
        errors = errors or default_errors(schema, here, pruned=options.pruned_defaults)
        found.extend(errors)
        structural = not errors
    keywords = keyword_errors(schema, here, options.lists)
    found.extend(keywords)
    if structural and not keywords and options.validate_rules is not None:
        found.extend(options.validate_rules(schema, here))
    if not found and error is not None:
        found.append(bad_value(here, "Invalid", "", error))
    return found


def _root_errors(schema: _Json, path: str) -> list[FieldError]:
    """The errors of a root schema with a status subresource: most keywords would not apply to a status update."""
    for name in set_fields(schema):
        if name == "Type":
            if schema["type"] != "object":
                text = f'only "object" is allowed as the type {_WITH_STATUS}'
                return [bad_value(f"{path}.type", "Invalid", schema["type"], text)]
        elif name not in _AT_ROOT.split():
            text = (
                f"only [{_AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled"
            )
            return [bad_value(path, "Invalid", schema_struct(schema), text)]
    return []


def _versions_together(internal: InternalSpec, shown: Any) -> list[FieldError]:
    found: list[FieldError] = []
    names = [version.get("name") or "" for version in internal.versions]
    if len(set(names)) != len(names):
        found.append(bad_value("spec.versions", "Invalid", shown, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in internal.versions) != 1:
        text = "must have exactly one version marked as storage version"
        found.append(bad_value("spec.versions", "Invalid", shown, text))
    if names and names[0] and (texts := dns1035_label_errors(names[0])):
        found.append(bad_value("spec.version", "Invalid", names[0], ",".join(texts)))
    return found


def _names(names: _Json, path: str) -> list[FieldError]:
    found = [
        bad_value(f"{path}.{name}", "Invalid", names[name], ",".join(texts))
        for name in ("plural", "singular")
        if names.get(name) and (texts := dns1035_label_errors(names[name]))
    ]
    for name in ("kind", "listKind"):
        if names.get(name) and (texts := dns1035_label_errors(names[name].lower())):
            text = f"may have mixed case, but should otherwise match: {','.join(texts)}"
            found.append(bad_value(f"{path}.{name}", "Invalid", names[name], text))
    found.extend(_labels(names.get("shortNames") or [], f"{path}.shortNames"))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        text = "kind and listKind may not be the same"
        found.append(bad_value(f"{path}.listKind", "Invalid", names["listKind"], text))
    found.extend(_labels(names.get("categories") or [], f"{path}.categories"))
    return found


def _labels(names: list[str], path: str) -> list[FieldError]:
    wrong = ((i, name, dns1035_label_errors(name)) for i, name in enumerate(names))
    return [bad_value(f"{path}[{i}]", "Invalid", name, ",".join(texts)) for i, name, texts in wrong if texts]


def _stored_versions(stored: list[str], versions: list[_Json]) -> list[FieldError]:
    path = "status.storedVersions"
    if not stored:
        return [bad_value(path, "Invalid", None, "must have at least one stored version")]
    found = [
        bad_value(path, "Invalid", stored, f"must have the storage version {version.get('name')}")
        for version in versions
        if version.get("storage") and version.get("name") not in stored
    ]
    present = {version.get("name") for version in versions}
    for i, name in enumerate(stored):
        if name not in present:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            found.append(bad_value(f"{path}[{i}]", "Invalid", name, text))
    return found


def _immutable(spec: _Json, old: _Json, options: _Options) -> list[FieldError]:
    names, old_names = spec.get("names") or {}, old.get("names") or {}
    fixed = [
        ("group", spec.get("group"), old.get("group")),
        ("names.plural", names.get("plural"), old_names.get("plural")),
    ]
    if options.fixed_names:
        kinds = ("names.kind", names.get("kind"), old_names.get("kind"))
        fixed = [("scope", spec.get("scope"), old.get("scope")), kinds, *fixed]
    return [
        bad_value(f"spec.{name}", "Invalid", now or "", "field is immutable")
        for name, now, before in fixed
        if (now or "") != (before or "")
    ]
