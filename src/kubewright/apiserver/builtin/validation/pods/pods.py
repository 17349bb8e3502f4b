"""Validates pods (create, update, ephemeral containers, resize), PodTemplates and Bindings."""

from __future__ import annotations

from copy import deepcopy
from typing import Final

from kubewright.apiserver.builtin.golang.internals import difference, internal
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    forbidden,
    invalid,
    one_of,
    required,
    shown_map,
)
from kubewright.apiserver.builtin.validation.formats import range_error
from kubewright.apiserver.builtin.validation.pods.affinity import tolerations_errors
from kubewright.apiserver.builtin.validation.pods.containers import image_padding_errors
from kubewright.apiserver.builtin.validation.pods.pod_spec import (
    all_containers,
    pod_annotation_errors,
    pod_spec_errors,
    template_errors,
)
from kubewright.apiserver.builtin.validation.pods.security import annotation_mismatch_errors

__all__ = (
    "binding_errors",
    "ephemeral_containers_errors",
    "equal_ignoring_empty",
    "pod_create_errors",
    "pod_resize_errors",
    "pod_template_errors",
    "pod_update_errors",
)

_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_MIRROR: Final = "kubernetes.io/config.mirror"
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"


def equal_ignoring_empty(left: JSON, right: JSON) -> bool:
    """Whether two values are equal in Go, where absent, null, [] and {} are the same in most fields."""
    if isinstance(left, dict) and isinstance(right, dict):
        return all(equal_ignoring_empty(left.get(name), right.get(name)) for name in {*left, *right})
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal_ignoring_empty, left, right))
    return left == right or (left in (None, [], {}) and right in (None, [], {}))


def _annotations(pod: JSON) -> dict[str, str]:
    return (pod.get("metadata") or {}).get("annotations") or {}


def pod_create_errors(pod: JSON) -> Errors:
    """ValidatePodCreate."""
    spec = pod.get("spec") or {}
    errors = _everything(pod)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    if _annotations(pod):
        errors += annotation_mismatch_errors("spec", _annotations(pod), spec, all_containers("spec", spec))
    return errors


def pod_template_errors(template: JSON) -> Errors:
    """ValidatePodTemplate."""
    return template_errors("template", template.get("template") or {})


def _everything(pod: JSON) -> Errors:
    meta, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    errors = pod_annotation_errors("metadata.annotations", meta.get("annotations"), spec)
    errors += pod_spec_errors("spec", spec, meta)
    if not spec.get("serviceAccountName"):
        detail = "must not be specified when serviceAccountName is not set"
        errors += [
            forbidden(f"spec.volumes[{number}].projected.sources[{position}].serviceAccountToken", detail)
            for number, volume in enumerate(spec.get("volumes") or ())
            for position, source in enumerate((volume.get("projected") or {}).get("sources") or ())
            if source.get("serviceAccountToken") is not None
        ]
    errors += image_padding_errors("spec.containers", spec.get("containers"))
    return errors + image_padding_errors("spec.initContainers", spec.get("initContainers"))


def annotation_change_errors(pod: JSON, old: JSON) -> Errors:
    """ValidatePodSpecificAnnotationUpdates: some annotations are immutable."""
    new, before = _annotations(pod), _annotations(old)
    errors: Errors = []
    for key in before:
        if new.get(key) == before[key]:
            continue
        if key.startswith(_APP_ARMOR):
            errors.append(forbidden(f"metadata.annotations[{key}]", "may not remove or update AppArmor annotations"))
        if key == _MIRROR:
            errors.append(forbidden(f"metadata.annotations[{key}]", "may not remove or update mirror pod annotation"))
    for key in new:
        if key in before:
            continue
        if key.startswith(_APP_ARMOR):
            errors.append(forbidden(f"metadata.annotations[{key}]", "may not add AppArmor annotations"))
        if key == _MIRROR:
            errors.append(forbidden(f"metadata.annotations[{key}]", "may not add mirror pod annotation"))
    return errors + pod_annotation_errors("metadata.annotations", new, pod.get("spec") or {})


def pod_update_errors(pod: JSON, old: JSON) -> Errors:
    """ValidatePodUpdate: images, a shorter deadline, more tolerations, fewer scheduling gates, and little else."""
    spec, before = pod.get("spec") or {}, old.get("spec") or {}
    errors = _everything(pod) + annotation_change_errors(pod, old)
    for part in ("containers", "initContainers"):
        new, kept = spec.get(part) or [], before.get(part) or []
        if len(new) != len(kept):
            return [*errors, forbidden(f"spec.{part}", "pod updates may not add or remove containers")]
        errors += [required(f"spec.{part}[{i}].image") for i, container in enumerate(new) if not container.get("image")]
        errors += image_padding_errors(f"spec.{part}", new)
    late = _deadline_errors(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    errors += late
    if late and spec.get("activeDeadlineSeconds") is not None:
        return errors
    errors += _toleration_errors(spec.get("tolerations") or [], before.get("tolerations") or [])
    errors += _gate_errors(spec.get("schedulingGates") or [], before.get("schedulingGates") or [])
    if equal_ignoring_empty(spec, before):
        return errors
    munged = _munged(spec, before)
    if before.get("schedulingGates"):
        errors += _gated_errors(munged, before)
    if not equal_ignoring_empty(munged, before):
        changes = difference(before, munged, "core.PodSpec")
        errors.append(forbidden("spec", f"pod updates may not change fields other than {_UPDATABLE}\n{changes}"))
    return errors


def _deadline_errors(new: int | None, old: int | None) -> Errors:
    place = "spec.activeDeadlineSeconds"
    if new is None:
        detail = "must not update from a positive integer to nil value"
        return [] if old is None else [invalid(place, None, detail)]
    if not 0 <= new <= 2**31 - 1:
        return [invalid(place, new, range_error(0, 2**31 - 1))]
    if old is not None and old < new:
        return [invalid(place, new, "must be less than or equal to previous value")]
    return []


def _toleration_errors(new: JSON, old: JSON) -> Errors:
    def without_seconds(toleration: JSON) -> JSON:
        return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}

    kept = [without_seconds(toleration) for toleration in new]
    if any(without_seconds(one) not in kept for one in old):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden("spec.tolerations", detail)]
    return tolerations_errors("spec.tolerations", new)


def _gate_errors(new: JSON, old: JSON) -> Errors:
    known = {gate.get("name") for gate in old}
    return [
        forbidden(
            f"spec.schedulingGates[{position}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'",
        )
        for position, gate in enumerate(new)
        if gate.get("name") not in known
    ]


def _munged(spec: JSON, before: JSON) -> JSON:
    """The new spec with everything that may change reset (mungedPodSpec)."""
    munged = deepcopy(spec)
    for part in ("containers", "initContainers"):
        for container, kept in zip(munged.get(part) or (), before.get(part) or (), strict=True):
            container["image"] = kept.get("image", "")
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        munged.pop(name, None)
        if name in before:
            munged[name] = before[name]
    grace = "terminationGracePeriodSeconds"
    if before.get(grace, 0) < 0 and munged.get(grace) == 1:
        munged[grace] = before[grace]
    return munged


def _gated_errors(munged: JSON, before: JSON) -> Errors:
    """Pods with scheduling gates may get narrower node selectors."""
    errors: Errors = []
    new, old = munged.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if new != old:
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        if any(new.get(key) != value for key, value in old.items()):
            errors.append(invalid("spec.nodeSelector", shown_map(new), detail))
        munged.pop("nodeSelector", None)
        if "nodeSelector" in before:
            munged["nodeSelector"] = before["nodeSelector"]
    affinity, kept = munged.get("affinity"), (before.get("affinity") or {}).get("nodeAffinity")
    if not equal_ignoring_empty((affinity or {}).get("nodeAffinity"), kept):
        errors += _node_affinity_errors((affinity or {}).get("nodeAffinity") or {}, kept or {})
        rest = {name: value for name, value in (affinity or {}).items() if name != "nodeAffinity"}
        put_back = {**rest, "nodeAffinity": kept} if kept is not None else rest
        munged["affinity"] = put_back or None
    return errors


def _node_affinity_errors(new: JSON, old: JSON) -> Errors:
    part = "requiredDuringSchedulingIgnoredDuringExecution"
    place = f"spec.affinity.nodeAffinity.{part}.nodeSelectorTerms"
    terms, before = ((side.get(part) or {}).get("nodeSelectorTerms") or [] for side in (new, old))
    if before and len(terms) != len(before):
        return [
            invalid(
                place,
                internal(terms or None, "[]core.NodeSelectorTerm"),
                "no additions/deletions to non-empty NodeSelectorTerms list are allowed",
            )
        ]
    detail = "only additions are allowed (no mutations or deletions)"
    return [
        invalid(f"{place}[{position}]", internal(terms[position], "core.NodeSelectorTerm"), detail)
        for position, term in enumerate(before)
        if not _only_added(terms[position], term)
    ]


def _only_added(new: JSON, old: JSON) -> bool:
    if not old.get("matchExpressions") and not old.get("matchFields"):
        return not new.get("matchExpressions") and not new.get("matchFields")
    return all(
        (new.get(part) or [])[: len(old.get(part) or [])] == (old.get(part) or [])
        for part in ("matchExpressions", "matchFields")
    )


def ephemeral_containers_errors(pod: JSON, old: JSON) -> Errors:
    """ValidatePodEphemeralContainersUpdate: containers may be added, not removed or changed."""
    if _MIRROR in _annotations(old):
        return [forbidden("", "static pods do not support ephemeral containers")]
    errors = _everything(pod) + annotation_change_errors(pod, old)
    new = {container.get("name"): container for container in (pod.get("spec") or {}).get("ephemeralContainers") or ()}
    for container in (old.get("spec") or {}).get("ephemeralContainers") or ():
        name = container.get("name", "")
        if name not in new:
            detail = f'existing ephemeral containers "{name}" may not be removed\n'
            errors.append(forbidden("spec.ephemeralContainers", detail))
        elif not equal_ignoring_empty(container, new[name]):
            changes = difference(container, new[name], "core.EphemeralContainer")
            detail = f'existing ephemeral containers "{name}" may not be changed\n{changes}'
            errors.append(forbidden("spec.ephemeralContainers", detail))
    return errors


def pod_resize_errors(pod: JSON, old: JSON) -> Errors:
    """ValidatePodResize."""
    if _MIRROR in _annotations(old):
        return [forbidden("", "static pods cannot be resized")]
    spec, before = pod.get("spec") or {}, old.get("spec") or {}
    if (before.get("os") or {}).get("name") == "windows":
        return [forbidden("", "windows pods cannot be resized")]
    errors = _everything(pod)
    old_class = (old.get("status") or {}).get("qosClass") or quality_of_service(before)
    if quality_of_service(spec) != old_class:
        shown = (pod.get("status") or {}).get("qosClass", "")
        errors.append(invalid("spec", shown, "Pod QOS Class may not change as a result of resizing"))
    if any((side.get("resources") or {}).get(part) for side in (spec, before) for part in ("requests", "limits")):
        gate = "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
        detail = f"resize of pods with pod-level resources is forbidden when {gate}"
        return [*errors, forbidden("", detail)]
    ordering = _ordering_errors(spec, before)
    if ordering:
        return errors + ordering
    errors += _resized_errors(spec, before)
    munged = deepcopy(spec)
    for part in ("initContainers", "containers"):
        for container, kept in zip(munged.get(part) or (), before.get(part) or (), strict=True):
            if part == "containers" or container.get("restartPolicy") == "Always":
                container["resources"] = _without_compute(container.get("resources"), kept.get("resources"))
    errors += _mutable_errors(munged, before)
    if not errors and not equal_ignoring_empty(munged, before):
        errors.append(forbidden("spec", "only cpu and memory resources are mutable"))
    return errors


def _ordering_errors(spec: JSON, before: JSON) -> Errors:
    errors: Errors = []
    for part in ("containers", "initContainers"):
        new, kept = spec.get(part) or [], before.get(part) or []
        if len(new) != len(kept):
            errors.append(forbidden(f"spec.{part}", f"{part} may not be added or removed on resize"))
            continue
        detail = f"{part} may not be renamed or reordered on resize"
        for position, container in enumerate(kept):
            if container.get("name") != new[position].get("name"):
                errors.append(forbidden(f"spec.{part}[{position}].name", detail))
    return errors


def _resized_errors(spec: JSON, before: JSON) -> Errors:
    errors: Errors = []
    for part in ("initContainers", "containers"):
        for position, kept in enumerate(before.get(part) or ()):
            if part == "initContainers" and kept.get("restartPolicy") != "Always":
                continue
            new, old = spec[part][position].get("resources") or {}, kept.get("resources") or {}
            for name in ("requests", "limits"):
                if set(old.get(name) or ()) - set(new.get(name) or ()):
                    place = f"spec.{part}[{position}].resources.{name}"
                    errors.append(forbidden(place, f"resource {name} cannot be removed"))
    return errors


def _without_compute(new: JSON, old: JSON) -> JSON:
    made: dict[str, JSON] = {}
    for name in ("limits", "requests"):
        mine, kept = ((side or {}).get(name) or {} for side in (new, old))
        others = {key: value for key, value in mine.items() if key not in ("cpu", "memory")}
        made[name] = {**others, **{key: kept[key] for key in ("cpu", "memory") if key in kept}}
    return made


def _mutable_errors(munged: JSON, before: JSON) -> Errors:
    errors: Errors = []
    for container, kept in zip(munged.get("containers") or (), before.get("containers") or (), strict=True):
        if not equal_ignoring_empty(container, kept):
            errors.append(forbidden("spec", "only cpu and memory resources are mutable"))
    for container, kept in zip(munged.get("initContainers") or (), before.get("initContainers") or (), strict=True):
        if equal_ignoring_empty(container, kept):
            continue
        sidecar = container.get("restartPolicy") == "Always"
        detail = "only cpu and memory resources for sidecar containers are mutable"
        plain = "resources for non-sidecar init containers are immutable"
        errors.append(forbidden("spec", detail if sidecar else plain))
    return errors


def quality_of_service(spec: JSON) -> str:
    """The QoS class of a pod, as the resize validation computes it."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    requests, limits, guaranteed = False, False, True
    for container in containers:
        resources = container.get("resources") or {}
        requested = {key: value for key, value in (resources.get("requests") or {}).items() if key in ("cpu", "memory")}
        capped = {key: value for key, value in (resources.get("limits") or {}).items() if key in ("cpu", "memory")}
        requests, limits = requests or bool(requested), limits or bool(capped)
        guaranteed = (
            guaranteed and len(capped) == 2 and all(requested.get(key, capped[key]) == capped[key] for key in capped)
        )
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def binding_errors(binding: JSON) -> Errors:
    """ValidatePodBinding."""
    target = binding.get("target") or {}
    errors: Errors = []
    if target.get("kind", "") not in ("", "Node"):
        errors.append(one_of("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required("target.name"))
    return errors
