"""Validates PersistentVolumeClaims."""

from __future__ import annotations

from copy import deepcopy
from typing import Final

from kubewright.apiserver.builtin.golang.internals import difference
from kubewright.apiserver.builtin.golang.quantities import amount
from kubewright.apiserver.builtin.trees import semantic_equal
from kubewright.apiserver.builtin.validation.fields import (
    IMMUTABLE,
    JSON,
    Errors,
    annotations_errors,
    each,
    forbidden,
    invalid,
    label_selector_errors,
    labels_errors,
    one_of,
    required,
)
from kubewright.apiserver.builtin.validation.formats import dns_label, dns_subdomain, qualified_name_errors
from kubewright.apiserver.builtin.validation.pods.resources import amount_errors

__all__ = (
    "access_modes_errors",
    "claim_create_errors",
    "claim_spec_errors",
    "claim_status_errors",
    "claim_template_errors",
    "claim_update_errors",
)

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_RESIZES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


def access_modes_errors(path: str, modes: JSON) -> Errors:
    """The access modes: supported ones, and ReadWriteOncePod alone."""
    errors = [one_of(path, mode, _MODES) for mode in modes if mode not in _MODES]
    known = {mode for mode in modes if mode in _MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def claim_create_errors(claim: JSON) -> Errors:
    """ValidatePersistentVolumeClaim."""
    return claim_spec_errors("spec", claim.get("spec") or {})


def claim_template_errors(path: str, template: JSON) -> Errors:
    """ValidatePersistentVolumeClaimTemplate, of an ephemeral volume."""
    meta = template.get("metadata") or {}
    errors = annotations_errors(f"{path}.metadata.annotations", meta.get("annotations"))
    errors += labels_errors(f"{path}.metadata.labels", meta.get("labels"))
    errors += [
        forbidden(f"{path}.metadata.{name}", "cannot be set") for name in meta if name not in ("labels", "annotations")
    ]
    return errors + claim_spec_errors(f"{path}.spec", template.get("spec") or {})


def claim_spec_errors(path: str, spec: JSON) -> Errors:
    """ValidatePersistentVolumeClaimSpec."""
    errors: Errors = []
    modes = spec.get("accessModes") or ()
    if not modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    errors += label_selector_errors(f"{path}.selector", spec.get("selector"))
    errors += access_modes_errors(f"{path}.accessModes", modes)
    errors += _storage_errors(f"{path}.resources[storage]", spec)
    if spec.get("storageClassName"):
        errors += each(f"{path}.storageClassName", spec["storageClassName"], dns_subdomain(spec["storageClassName"]))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in ("Block", "Filesystem"):
        errors.append(one_of(f"{path}.volumeMode", mode, ("Block", "Filesystem")))
    errors += _source_errors(path, spec)
    if spec.get("volumeAttributesClassName"):
        name = spec["volumeAttributesClassName"]
        errors += each(f"{path}.volumeAttributesClassName", name, dns_subdomain(name))
    return errors


def _storage_errors(path: str, spec: JSON) -> Errors:
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        return [required(path)]
    if amount(storage) <= 0:
        return [invalid(path, storage, "must be greater than zero")]
    return amount_errors(path, "storage", storage)


def _source_errors(path: str, spec: JSON) -> Errors:
    errors: Errors = []
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        errors += _reference_errors(f"{path}.dataSource", source)
    if reference is not None:
        errors += _reference_errors(f"{path}.dataSourceRef", reference)
        namespace = reference.get("namespace")
        if namespace:
            errors += each(f"{path}.dataSourceRef.namespace", namespace, dns_label(namespace))
    if source is None or reference is None:
        return errors
    if reference.get("namespace"):
        errors.append(invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified"))
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        errors.append(invalid(path, {}, "must match dataSourceRef"))
    return errors


def _reference_errors(path: str, reference: JSON) -> Errors:
    errors = [required(f"{path}.{name}") for name in ("name", "kind") if not reference.get(name)]
    group = reference.get("apiGroup") or ""
    if not group and reference.get("kind") != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(path, reference.get("kind", ""), detail))
    return errors + (each(f"{path}.apiGroup", group, dns_subdomain(group)) if group else [])


def claim_update_errors(claim: JSON, old: JSON) -> Errors:
    """ValidatePersistentVolumeClaimUpdate: immutable but for the size of a bound claim, class and volume name."""
    spec, before = claim.get("spec") or {}, old.get("spec") or {}
    errors = claim_spec_errors("spec", spec)
    new, kept = deepcopy(spec), deepcopy(before)
    if not kept.get("volumeName"):
        _keep(kept, new, "volumeName")
    errors += _class_errors(claim, old, new, kept)
    if (claim.get("status") or {}).get("phase") == "Bound":
        if (new.get("resources") or {}).get("requests") is not None:
            new["resources"]["requests"]["storage"] = before["resources"]["requests"]["storage"]
        _keep(new, kept, "volumeAttributesClassName")
    if not semantic_equal(new, kept):
        detail = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        changes = difference(kept, new, "core.PersistentVolumeClaimSpec")
        errors.append(forbidden("spec", f"{detail}\n{changes}"))
    errors += _size_errors(spec, old)
    if spec.get("volumeMode") != before.get("volumeMode"):
        errors.append(invalid("volumeMode", spec.get("volumeMode"), IMMUTABLE))
    return errors


def _keep(new: JSON, kept: JSON, name: str) -> None:
    new.pop(name, None)
    if name in kept:
        new[name] = kept[name]


def _class_errors(claim: JSON, old: JSON, new: JSON, kept: JSON) -> Errors:
    """The class may be moved from the beta annotation to the field, or be set if it was not."""
    notes = (claim.get("metadata") or {}).get("annotations") or {}
    old_notes = (old.get("metadata") or {}).get("annotations") or {}
    name, before = new.get("storageClassName"), kept.get("storageClassName")
    noted = old_notes.get(_CLASS)
    if noted is not None and before is None and name == noted and notes.get(_CLASS, noted) == noted:
        new.pop("storageClassName", None)
        return []
    errors: Errors = []
    if notes.get(_CLASS, "") != (noted or ""):
        errors.append(invalid(f"metadata.annotations.{_CLASS}", notes.get(_CLASS, ""), IMMUTABLE))
    if name is not None and before is None and noted in (None, name):
        new.pop("storageClassName")
    return errors


def _size_errors(spec: JSON, old: JSON) -> Errors:
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
    before = (((old.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage", "0")
    capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
    if amount(size) < amount(before) and amount(size) <= amount(capacity):
        return [forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")]
    return []


def claim_status_errors(claim: JSON, old: JSON) -> Errors:
    """ValidatePersistentVolumeClaimStatusUpdate."""
    errors: Errors = []
    if not (claim.get("metadata") or {}).get("resourceVersion"):
        errors.append(required("resourceVersion"))
    if not (claim.get("spec") or {}).get("accessModes"):
        errors.append(required("Spec.accessModes"))
    status = claim.get("status") or {}
    for name, value in (status.get("capacity") or {}).items():
        errors += _basic_errors(f"status.capacity[{name}]", value)
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        errors += _status_name_errors("status.allocatedResourceStatuses", name)
        if state not in _RESIZES:
            errors.append(one_of("status.allocatedResourceStatuses", name, _RESIZES))
    for name, value in (status.get("allocatedResources") or {}).items():
        wrong = _status_name_errors("status.allocatedResources", name)
        place = f"status.allocatedResources[{name}]"
        errors += wrong or _basic_errors(place, value) or amount_errors(place, "storage", value)
    return errors


def _basic_errors(path: str, value: JSON) -> Errors:
    whole = amount(value).value
    return [invalid(path, whole, "must be a valid resource quantity")] if whole < 0 else []


def _status_name_errors(path: str, name: str) -> Errors:
    errors = each(path, name, qualified_name_errors(name))
    if not errors and ("/" not in name or "kubernetes.io/" in name) and name != "storage":
        errors.append(one_of(path, name, ("storage",)))
    return errors
