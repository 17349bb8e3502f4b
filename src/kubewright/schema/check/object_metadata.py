"""Validation of the metadata of a new object, whatever its kind: name, namespace, labels, owners, finalizers.

With the messages and in the order of apimachinery's ValidateObjectMeta (pkg/api/validation/objectmeta.go). The metadata
is a tree that was decoded and has the right types. Used for embedded objects in `check.embedded` and for every object
in `kubewright.apiserver.kinds.object_meta`, which also has the rules for updates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kubewright.api.field_errors import FieldError, bad_value, too_long
from kubewright.api.go_text import GoStruct, as_maps
from kubewright.api.names import (
    dns1123_label_errors,
    dns1123_subdomain_errors,
    label_value_errors,
    qualified_name_errors,
)

__all__ = ("masked_prefix", "new_metadata_errors", "path_segment_errors", "shared_metadata_errors", "subdomain_errors")

_ANNOTATIONS_LIMIT: Final = 256 * 1024
_MANAGER_LIMIT: Final = 128
_SUBRESOURCE_LIMIT: Final = 256
_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"


def masked_prefix(name: str) -> str:
    """A prefix with a letter in place of a final dash, because the server appends text (apimachinery:
    MaskTrailingDash).
    """
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name


def subdomain_errors(name: str, prefix: bool) -> list[str]:
    """The rule for the names of most kinds; a prefix may end with a dash."""
    return dns1123_subdomain_errors(masked_prefix(name) if prefix else name)


def path_segment_errors(name: str, prefix: bool) -> list[str]:
    """The weakest rule: the name can be a segment of a path."""
    if not prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{mark}'" for mark in ("/", "%") if mark in name]


def new_metadata_errors(
    metadata: Mapping[str, Any], *, namespaced: bool, name_errors: Callable[[str, bool], list[str]], path: str
) -> list[FieldError]:
    """The errors of the metadata of a new object."""
    found: list[FieldError] = []
    name, prefix = metadata.get("name") or "", metadata.get("generateName") or ""
    if prefix:
        found.extend(bad_value(f"{path}.generateName", "Invalid", prefix, text) for text in name_errors(prefix, True))
    if name:
        found.extend(bad_value(f"{path}.name", "Invalid", name, text) for text in name_errors(name, False))
    else:
        found.append(FieldError(f"{path}.name", "Required", "name or generateName is required"))
    namespace = metadata.get("namespace") or ""
    if not namespaced and namespace:
        found.append(FieldError(f"{path}.namespace", "Forbidden", "not allowed on this type"))
    elif namespaced and not namespace:
        found.append(FieldError(f"{path}.namespace", "Required"))
    elif namespaced:
        texts = dns1123_label_errors(namespace)
        found.extend(bad_value(f"{path}.namespace", "Invalid", namespace, text) for text in texts)
    generation = metadata.get("generation") or 0
    if generation < 0:
        found.append(bad_value(f"{path}.generation", "Invalid", generation, "must be greater than or equal to 0"))
    found.extend(shared_metadata_errors(metadata, path=path, finalizers=True))
    return found


def shared_metadata_errors(metadata: Mapping[str, Any], *, path: str, finalizers: bool) -> list[FieldError]:
    """The rules for every write; finalizers are checked only for new objects."""
    found: list[FieldError] = []
    if labels := metadata.get("labels"):
        found.extend(_labels(labels, f"{path}.labels"))
    if annotations := metadata.get("annotations"):
        found.extend(_annotations(annotations, f"{path}.annotations"))
    if owners := metadata.get("ownerReferences"):
        found.extend(_owners(owners, f"{path}.ownerReferences"))
    if finalizers and (names := metadata.get("finalizers")):
        found.extend(_finalizers(names, f"{path}.finalizers"))
    if managed := metadata.get("managedFields"):
        found.extend(_managed_fields(managed, f"{path}.managedFields"))
    return found


def _labels(labels: Mapping[str, str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for key, value in labels.items():
        found.extend(bad_value(path, "Invalid", key, text) for text in qualified_name_errors(key))
        found.extend(bad_value(path, "Invalid", value, text) for text in label_value_errors(value))
    return found


def _annotations(annotations: Mapping[str, str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    size = 0
    for key, value in annotations.items():
        found.extend(bad_value(path, "Invalid", key, text) for text in qualified_name_errors(key.lower()))
        size += len(key.encode()) + (len(value) if value.isascii() else len(value.encode()))
    if size > _ANNOTATIONS_LIMIT:
        found.append(too_long(path, _ANNOTATIONS_LIMIT))
    return found


def _owners(owners: list[dict[str, Any]], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    controller = ""
    shown: Any = None
    for owner in owners:
        found.extend(_owner(owner, path))
        if owner.get("controller"):
            name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                text = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {name}'
                )
                shown = shown or as_maps([_owner_struct(one) for one in owners])
                found.append(FieldError(path, "Invalid", text, shown))
            else:
                controller = name
    return found


def _owner(owner: dict[str, Any], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    api_version, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
    # A version that cannot be parsed counts as empty.
    version = "" if api_version.count("/") > 1 else api_version.rpartition("/")[2]
    if not version:
        found.append(bad_value(f"{path}.apiVersion", "Invalid", api_version, "version must not be empty"))
    missing = (name for name in ("kind", "name", "uid") if not owner.get(name))
    found.extend(bad_value(f"{path}.{name}", "Invalid", "", "must not be empty") for name in missing)
    if api_version == "v1" and kind == "Event":
        text = "/v1, Kind=Event is disallowed from being an owner"
        found.append(bad_value(path, "Invalid", _owner_struct(owner), text))
    return found


def _finalizers(names: list[str], path: str) -> list[FieldError]:
    found = [bad_value(path, "Invalid", name, text) for name in names for text in qualified_name_errors(name)]
    if _ORPHAN in names and _FOREGROUND in names:
        text = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        found.append(bad_value(path, "Invalid", names, text))
    return found


def _managed_fields(entries: list[dict[str, Any]], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for i, entry in enumerate(entries):
        here = f"{path}[{i}]"
        operation, fields_type = entry.get("operation") or "", entry.get("fieldsType") or ""
        if operation not in ("Apply", "Update"):
            found.append(bad_value(f"{here}.operation", "Invalid", operation, "must be `Apply` or `Update`"))
        if fields_type not in ("", "FieldsV1"):
            found.append(bad_value(f"{here}.fieldsType", "Invalid", fields_type, "must be `FieldsV1`"))
        found.extend(_manager(entry.get("manager") or "", f"{here}.manager"))
        if len((entry.get("subresource") or "").encode()) > _SUBRESOURCE_LIMIT:
            found.append(too_long(f"{here}.subresource", _SUBRESOURCE_LIMIT))
    return found


def _manager(name: str, path: str) -> list[FieldError]:
    found = [too_long(path, _MANAGER_LIMIT)] if len(name.encode()) > _MANAGER_LIMIT else []
    at = 0
    for char in name:
        if not char.isprintable():
            found.append(bad_value(path, "Invalid", name, f"invalid character U+{ord(char):04X} (at position {at})"))
        at += len(char.encode())
    return found


def _owner_struct(owner: dict[str, Any]) -> GoStruct:
    """An owner reference as Go prints it: in this order, and the first four even if empty."""
    struct = GoStruct((name, owner.get(name) or "") for name in ("apiVersion", "kind", "name", "uid"))
    struct.update((name, owner[name]) for name in ("controller", "blockOwnerDeletion") if owner.get(name) is not None)
    return struct
