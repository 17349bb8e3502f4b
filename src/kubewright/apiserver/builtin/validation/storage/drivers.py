"""Validates CSI kinds, VolumeAttachments, VolumeAttributesClasses and RuntimeClasses."""

from __future__ import annotations

from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.fields import (
    IMMUTABLE,
    JSON,
    Errors,
    duplicate,
    each,
    forbidden,
    invalid,
    label_name_errors,
    label_selector_errors,
    labels_errors,
    long_name_errors,
    not_negative,
    one_of,
    required,
    short_name_errors,
    shown_selector,
    too_long,
)
from kubewright.apiserver.builtin.validation.formats import qualified_name_errors
from kubewright.apiserver.builtin.validation.pods.affinity import tolerations_errors
from kubewright.apiserver.builtin.validation.pods.pods import equal_ignoring_empty
from kubewright.apiserver.builtin.validation.pods.resources import container_resource_errors, negative_errors
from kubewright.apiserver.builtin.validation.pods.volume_sources import driver_name_errors

__all__ = (
    "attachment_errors",
    "attachment_update_errors",
    "attributes_class_errors",
    "attributes_class_update_errors",
    "driver_errors",
    "driver_update_errors",
    "node_drivers_errors",
    "node_drivers_update_errors",
    "runtime_class_errors",
    "runtime_class_update_errors",
    "storage_capacity_errors",
    "storage_capacity_update_errors",
)


def driver_errors(driver: JSON) -> Errors:
    """ValidateCSIDriver."""
    spec = driver.get("spec") or {}
    # The first name is wrong in kube-apiserver too.
    names = (("attachRequired", "attachedRequired"), ("podInfoOnMount",) * 2, ("storageCapacity",) * 2)
    errors = [required(f"spec.{shown}") for name, shown in names if spec.get(name) is None]
    policy, known = spec.get("fsGroupPolicy"), ("File", "None", "ReadWriteOnceWithFSType")
    if policy is not None and policy not in known:
        errors.append(one_of("spec.fsGroupPolicy", policy, known))
    errors += _token_requests(spec.get("tokenRequests") or ())
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in ("Persistent", "Ephemeral"):
            errors.append(one_of("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral")))
    if spec.get("seLinuxMount") is None:
        errors.append(required("spec.seLinuxMount"))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        detail = "must be greater than or equal to 10 seconds"
        errors.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, detail))
    secret = spec.get("serviceAccountTokenInSecrets")
    if secret is not None and not spec.get("tokenRequests"):
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(invalid("spec.serviceAccountTokenInSecrets", secret, detail))
    return errors


def _token_requests(requests: JSON) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for position, request in enumerate(requests):
        place, audience, seconds = (
            f"spec.tokenRequests[{position}]",
            request.get("audience", ""),
            request.get("expirationSeconds"),
        )
        if audience in seen:
            errors.append(duplicate(f"{place}.audience", audience))
            continue
        seen.add(audience)
        if seconds is not None and seconds < 600:
            detail = "may not specify a duration less than 10 minutes"
            errors.append(invalid(f"{place}.expirationSeconds", seconds, detail))
        if seconds is not None and seconds > 2**32:
            detail = "may not specify a duration larger than 2^32 seconds"
            errors.append(invalid(f"{place}.expirationSeconds", seconds, detail))
    return errors


def driver_update_errors(driver: JSON, old: JSON) -> Errors:
    """ValidateCSIDriverUpdate: some fields are immutable."""
    errors = driver_errors(driver)
    spec, before = driver.get("spec") or {}, old.get("spec") or {}
    for name, shown in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        if not equal_ignoring_empty(spec.get(name), before.get(name)):
            errors.append(invalid(f"spec.{shown}", spec.get(name), IMMUTABLE))
    return errors


def node_drivers_errors(node: JSON) -> Errors:
    """ValidateCSINode."""
    errors: Errors = []
    names: set[str] = set()
    for position, driver in enumerate((node.get("spec") or {}).get("drivers") or ()):
        place, name, number = f"spec.drivers[{position}]", driver.get("name", ""), driver.get("nodeID", "")
        errors += driver_name_errors(f"{place}.name", name)
        if not number:
            errors.append(required(f"{place}.nodeID"))
        if len(number) > 256:
            errors.append(invalid(f"{place}.nodeID", number, "must be 256 characters or less"))
        errors += not_negative(f"{place}.allocatable.count", (driver.get("allocatable") or {}).get("count"))
        if name in names:
            errors.append(duplicate(f"{place}.name", name))
        names.add(name)
        keys = driver.get("topologyKeys") or []
        for index, key in enumerate(keys):
            if not key:
                errors.append(required(place))
            if key in keys[:index]:
                errors.append(duplicate(place, key))
            errors += label_name_errors(place, key)
    return errors


def node_drivers_update_errors(node: JSON, old: JSON) -> Errors:
    """ValidateCSINodeUpdate: a driver is immutable but for its allocatable count."""
    errors = node_drivers_errors(node)
    new = (node.get("spec") or {}).get("drivers") or ()
    for before in (old.get("spec") or {}).get("drivers") or ():
        for driver in new:
            if driver.get("name") != before.get("name"):
                continue
            mine, kept = ({**side, "allocatable": None} for side in (driver, before))
            if not equal_ignoring_empty(mine, kept):
                shown = internal(mine, "storage.CSINodeDriver")
                errors.append(invalid("spec.drivers", shown, IMMUTABLE))
    return errors


def storage_capacity_errors(capacity: JSON) -> Errors:
    """ValidateCSIStorageCapacity."""
    errors = label_selector_errors("nodeTopology", capacity.get("nodeTopology"))
    errors += long_name_errors("storageClassName", capacity.get("storageClassName", ""))
    return errors + (negative_errors("capacity", capacity["capacity"]) if capacity.get("capacity") else [])


def storage_capacity_update_errors(capacity: JSON, old: JSON) -> Errors:
    """ValidateCSIStorageCapacityUpdate: topology and storage class are immutable."""
    errors = storage_capacity_errors(capacity)
    if not equal_ignoring_empty(capacity.get("nodeTopology"), old.get("nodeTopology")):
        errors.append(invalid("nodeTopology", shown_selector(capacity.get("nodeTopology")), IMMUTABLE))
    if capacity.get("storageClassName") != old.get("storageClassName"):
        errors.append(invalid("storageClassName", capacity.get("storageClassName", ""), IMMUTABLE))
    return errors


def attachment_errors(attachment: JSON, old: JSON = None) -> Errors:
    """ValidateVolumeAttachment."""
    spec = attachment.get("spec") or {}
    attacher, source = spec.get("attacher", ""), spec.get("source") or {}
    errors = [] if attacher else [required("spec.attacher")]
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if name is None and inline is None:
        errors.append(required("spec.source", detail))
    elif name is not None and inline is not None:
        errors.append(forbidden("spec.source", detail))
    elif name == "":
        place = "spec.source.persistentVolumeName"
        errors.append(required(place, "must specify non empty persistentVolumeName"))
    errors += long_name_errors("spec.nodeName", spec.get("nodeName", ""))
    if old is not None:
        return errors
    # ValidateVolumeAttachmentV1, which an update does not call.
    errors += driver_name_errors("spec.attacher", attacher)
    return errors + (long_name_errors("spec.source.persistentVolumeName", name) if name is not None else [])


def attachment_update_errors(attachment: JSON, old: JSON) -> Errors:
    """ValidateVolumeAttachmentUpdate: the spec is immutable."""
    errors = attachment_errors(attachment, old)
    if not equal_ignoring_empty(attachment.get("spec"), old.get("spec")):
        shown = internal(attachment.get("spec"), "storage.VolumeAttachmentSpec")
        errors.append(invalid("spec", shown, IMMUTABLE))
    return errors


def attributes_class_errors(kind: JSON) -> Errors:
    """ValidateVolumeAttributesClass."""
    name, parameters = kind.get("driverName", ""), kind.get("parameters") or {}
    errors = [] if name else [required("driverName")]
    errors += each("driverName", name.lower(), qualified_name_errors(name.lower())) if name else []
    if len(parameters) > 512:
        return [*errors, too_long("parameters", 512)]
    errors += [invalid("parameters", key, "field can not be empty.") for key in parameters if not key]
    if not parameters:
        errors.append(required("parameters", "must contain at least one key/value pair"))
    return errors


def attributes_class_update_errors(kind: JSON, old: JSON) -> Errors:
    """ValidateVolumeAttributesClassUpdate: driver and parameters are immutable."""
    errors = [
        forbidden(name, f"updates to {name} are forbidden.")
        for name in ("driverName", "parameters")
        if not equal_ignoring_empty(kind.get(name), old.get(name))
    ]
    return errors + attributes_class_errors(kind)


def runtime_class_errors(kind: JSON) -> Errors:
    """ValidateRuntimeClass."""
    errors = short_name_errors("handler", kind.get("handler", ""))
    if kind.get("overhead") is not None:
        errors += container_resource_errors("overhead", {"limits": kind["overhead"].get("podFixed")}, ())
    scheduling = kind.get("scheduling") or {}
    errors += labels_errors("scheduling.nodeSelector", scheduling.get("nodeSelector"))
    tolerations = scheduling.get("tolerations") or []
    errors += tolerations_errors("scheduling.tolerations", tolerations)
    seen: list[JSON] = []
    for position, toleration in enumerate(tolerations):
        key = {name: value for name, value in toleration.items() if name != "tolerationSeconds"}
        if key in seen:
            shown = internal(toleration, "core.Toleration")
            errors.append(duplicate(f"scheduling.tolerations[{position}]", shown))
        seen.append(key)
    return errors


def runtime_class_update_errors(kind: JSON, old: JSON) -> Errors:
    """ValidateRuntimeClassUpdate: the handler is immutable."""
    errors = runtime_class_errors(kind)
    if kind.get("handler") != old.get("handler"):
        errors.append(invalid("handler", kind.get("handler", ""), IMMUTABLE))
    return errors
