"""Validates PersistentVolumes and StorageClasses."""

from __future__ import annotations

from copy import deepcopy
from typing import Final

from kubewright.apiserver.builtin.golang.internals import difference, internal
from kubewright.apiserver.builtin.golang.quantities import amount
from kubewright.apiserver.builtin.validation.fields import (
    IMMUTABLE,
    JSON,
    Errors,
    duplicate,
    each,
    forbidden,
    invalid,
    label_name_errors,
    long_name_errors,
    one_of,
    required,
    short_name_errors,
    shown_map,
    too_long,
)
from kubewright.apiserver.builtin.validation.formats import dns_label, dns_subdomain, qualified_name_errors
from kubewright.apiserver.builtin.validation.pods.affinity import node_selector_errors
from kubewright.apiserver.builtin.validation.pods.paths import backstep_errors
from kubewright.apiserver.builtin.validation.pods.pods import equal_ignoring_empty
from kubewright.apiserver.builtin.validation.pods.volume_claims import access_modes_errors
from kubewright.apiserver.builtin.validation.pods.volume_sources import (
    SHARED_SOURCES,
    driver_name_errors,
    required_names,
)

__all__ = (
    "storage_class_errors",
    "storage_class_update_errors",
    "volume_errors",
    "volume_status_errors",
    "volume_update_errors",
)

_GA_KEYS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
"""The stable labels of those that were in beta. kube-apiserver takes no key for the stable one of any other."""
_POLICIES: Final = ("Delete", "Recycle", "Retain")
_ORDER: Final = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
]


def volume_errors(volume: JSON) -> Errors:
    """ValidatePersistentVolume."""
    spec = volume.get("spec") or {}
    errors: Errors = []
    modes = spec.get("accessModes") or ()
    if not modes:
        errors.append(required("spec.accessModes"))
    errors += access_modes_errors("spec.accessModes", modes) + _capacity_errors(spec.get("capacity"))
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if policy and policy not in _POLICIES:
        errors.append(one_of("spec.persistentVolumeReclaimPolicy", policy, _POLICIES))
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        place = "spec.nodeAffinity.required"
        if affinity.get("required") is None:
            errors.append(required(place, "must specify required node constraints"))
        else:
            errors += node_selector_errors(place, affinity["required"])
    errors += _source_errors(spec)
    host = (spec.get("hostPath") or {}).get("path")
    if policy == "Recycle" and host is not None and not host.strip("/."):
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden("spec.persistentVolumeReclaimPolicy", detail))
    return errors + _class_errors(spec)


def _capacity_errors(capacity: JSON) -> Errors:
    errors: Errors = []
    if not capacity:
        errors.append(required("spec.capacity"))
    if set(capacity or ()) != {"storage"}:
        errors.append(one_of("spec.capacity", shown_map(capacity), ("storage",)))
    for name, value in (capacity or {}).items():
        place, whole = f"spec.capacity[{name}]", amount(value).value
        if whole < 0:
            errors.append(invalid(place, whole, "must be a valid resource quantity"))
        if amount(value) <= 0:
            errors.append(invalid(place, value, "must be greater than zero"))
    return errors


def _source_errors(spec: JSON) -> Errors:
    errors: Errors = []
    present = [name for name in _ORDER if spec.get(name) is not None]
    for position, name in enumerate(present):
        if position and name != "flexVolume":
            shown = {"cephfs": "cephFS"}.get(name, name)
            errors.append(forbidden(f"spec.{shown}", "may not specify more than 1 volume type"))
            continue
        place = f"spec.{'persistentDisk' if name == 'gcePersistentDisk' else name}"
        errors += _source(place, name, spec)
    return errors if present else [*errors, required("spec", "must specify a volume type")]


def _source(path: str, name: str, spec: JSON) -> Errors:
    source = spec[name]
    if name == "local":
        errors = required_names(path, source, "path") + backstep_errors(f"{path}.path", source.get("path", ""))
        if spec.get("nodeAffinity") is None:
            errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
        return errors
    if name == "csi":
        return _csi(path, source)
    errors = SHARED_SOURCES[name](path, source)
    secret = source.get("secretRef") or {}
    if name in ("cinder", "storageos") and secret and not secret.get("namespace"):
        errors.append(required(f"{path}.secretRef.namespace"))
    if name == "azureFile" and source.get("secretNamespace") == "":
        errors.append(required(f"{path}.secretNamespace"))
    if name == "glusterfs" and source.get("endpointsNamespace") is not None:
        namespace, place = source["endpointsNamespace"], f"{path}.endpointsNamespace"
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        errors += each(place, namespace, dns_label(namespace)) if namespace else [invalid(place, namespace, detail)]
    return errors


def _csi(path: str, source: JSON) -> Errors:
    errors = driver_name_errors(f"{path}.driver", source.get("driver", ""))
    errors += required_names(path, source, "volumeHandle")
    for name in (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ):
        secret = source.get(name)
        if secret is None:
            continue
        place, word, namespace = f"{path}.{name}", secret.get("name", ""), secret.get("namespace", "")
        errors += long_name_errors(f"{place}.name", word) if word else [required(f"{place}.name")]
        at = f"{place}.namespace"
        errors += short_name_errors(at, namespace) if namespace else [required(at)]
    return errors


def _class_errors(spec: JSON) -> Errors:
    errors: Errors = []
    if spec.get("storageClassName"):
        errors += each("spec.storageClassName", spec["storageClassName"], dns_subdomain(spec["storageClassName"]))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in ("Block", "Filesystem"):
        errors.append(one_of("spec.volumeMode", mode, ("Block", "Filesystem")))
    attributes, place = spec.get("volumeAttributesClassName"), "spec.volumeAttributesClassName"
    if attributes is not None:
        empty = [required(place, "an empty string is disallowed")]
        errors += each(place, attributes, dns_subdomain(attributes)) if attributes else empty
        if spec.get("csi") is None:
            errors.append(required("spec.csi", "has to be specified when using volumeAttributesClassName"))
    return errors


def volume_update_errors(volume: JSON, old: JSON) -> Errors:
    """ValidatePersistentVolumeUpdate: the source is immutable."""
    errors = volume_errors(volume)
    spec, before = volume.get("spec") or {}, old.get("spec") or {}
    new, kept = ({name: deepcopy(side[name]) for name in _ORDER if name in side} for side in (spec, before))
    secret = "controllerExpandSecretRef"  # noqa: S105  # the name of a field
    if new.get("csi") is not None and kept.get("csi") is not None and secret not in kept["csi"]:
        new["csi"].pop(secret, None)
    if not equal_ignoring_empty(new, kept):
        changes = difference(kept, new, "core.PersistentVolumeSource")
        detail = f"spec.persistentvolumesource is immutable after creation\n{changes}"
        errors.append(forbidden("spec.persistentvolumesource", detail))
    if spec.get("volumeMode") != before.get("volumeMode"):
        errors.append(invalid("volumeMode", spec.get("volumeMode"), IMMUTABLE))
    affinity, old_affinity = spec.get("nodeAffinity"), before.get("nodeAffinity")
    if old_affinity is not None and not equal_ignoring_empty(affinity, _with_ga_keys(old_affinity, affinity)):
        detail = f"{IMMUTABLE}, except for updating from beta label to GA"
        errors.append(invalid("nodeAffinity", internal(spec.get("nodeAffinity"), "*core.VolumeNodeAffinity"), detail))
    if before.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        detail = "update from non-nil value to nil is forbidden"
        errors.append(forbidden("spec.volumeAttributesClassName", detail))
    return errors


def _with_ga_keys(old: JSON, new: JSON) -> JSON:
    """A node affinity whose keys are the stable labels where another has them in the same place."""
    kept = deepcopy(old)
    for before, after in zip(_requirements(kept), _requirements(new or {}), strict=False):
        if _GA_KEYS.get(before.get("key", ""), "") == after.get("key", ""):
            before["key"] = after.get("key", "")
    return kept


def _requirements(affinity: JSON) -> list[JSON]:
    terms = (affinity.get("required") or {}).get("nodeSelectorTerms") or ()
    names = ("matchExpressions", "matchFields")
    return [requirement for term in terms for name in names for requirement in term.get(name) or ()]


def volume_status_errors(volume: JSON, old: JSON) -> Errors:
    """ValidatePersistentVolumeStatusUpdate."""
    return [] if (volume.get("metadata") or {}).get("resourceVersion") else [required("resourceVersion")]


def storage_class_errors(kind: JSON) -> Errors:
    """ValidateStorageClass."""
    name, parameters = kind.get("provisioner", ""), kind.get("parameters") or {}
    errors = [] if name else [required("provisioner")]
    errors += each("provisioner", name.lower(), qualified_name_errors(name.lower())) if name else []
    if len(parameters) > 512:
        errors.append(too_long("parameters", 512))
    else:
        errors += [invalid("parameters", key, "field can not be empty.") for key in parameters if not key]
        if sum(len(key) + len(value) for key, value in parameters.items()) > 256 * 1024:
            errors.append(too_long("parameters", 256 * 1024))
    policy = kind.get("reclaimPolicy", "")
    if policy and policy not in ("Delete", "Retain"):
        errors.append(one_of("reclaimPolicy", policy, ("Delete", "Retain")))
    mode, known = kind.get("volumeBindingMode"), ("Immediate", "WaitForFirstConsumer")
    if mode is None:
        errors.append(required("volumeBindingMode"))
    elif mode not in known:
        errors.append(one_of("volumeBindingMode", mode, known))
    return errors + _topologies(kind.get("allowedTopologies") or ())


def _topologies(terms: JSON) -> Errors:
    errors: Errors = []
    seen: list[dict[str, set[str]]] = []
    for number, term in enumerate(terms):
        place = f"allowedTopologies[{number}].matchLabelExpressions"
        found: dict[str, set[str]] = {}
        for position, expression in enumerate(term.get("matchLabelExpressions") or ()):
            at, values, key = f"{place}[{position}]", expression.get("values") or [], expression.get("key", "")
            if not values:
                errors.append(required(f"{at}.values"))
            for index, value in enumerate(values):
                if value in values[:index]:
                    errors.append(duplicate(f"{at}.values[{index}]", value))
            errors += label_name_errors(f"{at}.key", key)
            if key in found:
                errors.append(duplicate(f"{at}.key", key))
            found[key] = set(values)
        if found in seen:
            errors.append(duplicate(place, ""))
        seen.append(found)
    return errors


def storage_class_update_errors(kind: JSON, old: JSON) -> Errors:
    """ValidateStorageClassUpdate: immutable but for volume expansion and topologies."""
    errors = storage_class_errors(kind)
    for name, empty in (("parameters", {}), ("provisioner", ""), ("reclaimPolicy", "")):
        if (kind.get(name) or empty) != (old.get(name) or empty):
            errors.append(forbidden(name, f"updates to {name} are forbidden."))
    if kind.get("volumeBindingMode") != old.get("volumeBindingMode"):
        errors.append(invalid("volumeBindingMode", kind.get("volumeBindingMode"), IMMUTABLE))
    return errors
