"""Validates Deployments, ReplicaSets, StatefulSets, DaemonSets, ControllerRevisions and ReplicationControllers."""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.golang.internals import internal
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
    not_negative,
    one_of,
    required,
    selects,
    short_name_errors,
    shown_map,
    shown_selector,
)
from kubewright.apiserver.builtin.validation.formats import percent_errors
from kubewright.apiserver.builtin.validation.pods.pod_spec import pod_annotation_errors, template_errors
from kubewright.apiserver.builtin.validation.pods.pods import equal_ignoring_empty
from kubewright.apiserver.builtin.validation.pods.volume_claims import claim_spec_errors

__all__ = (
    "controller_errors",
    "controller_status_errors",
    "daemon_set_errors",
    "daemon_set_status_errors",
    "daemon_set_update_errors",
    "deployment_errors",
    "deployment_status_errors",
    "deployment_update_errors",
    "over_100_percent_errors",
    "positive_or_percent_errors",
    "replica_set_errors",
    "replica_set_status_errors",
    "replica_set_update_errors",
    "revision_errors",
    "revision_update_errors",
    "stateful_set_errors",
    "stateful_set_status_errors",
    "stateful_set_update_errors",
)

_MISMATCH: Final = "`selector` does not match template `labels`"
_MORE: Final = "cannot be greater than status.replicas"


def positive_or_percent_errors(path: str, value: int | str) -> Errors:
    """ValidatePositiveIntOrPercent."""
    if isinstance(value, str):
        return each(path, value, percent_errors(value))
    return not_negative(path, value)


def _share(value: int | str | None) -> int:
    """The percentage or the number; 0 for an invalid one."""
    if isinstance(value, str):
        digits = value.removesuffix("%")
        return int(digits) if digits.isascii() and digits.isdigit() else 0
    return value or 0


def over_100_percent_errors(path: str, value: int | str) -> Errors:
    """IsNotMoreThan100Percent."""
    if isinstance(value, str) and not percent_errors(value) and _share(value) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def _immutable_selector(spec: JSON, before: JSON) -> Errors:
    new, old = spec.get("selector"), before.get("selector")
    return [] if equal_ignoring_empty(new, old) else [invalid("spec.selector", shown_selector(new), IMMUTABLE)]


def _selector_and_template(spec: JSON, word: str, kind: str) -> Errors:
    selector = spec.get("selector")
    errors: Errors = []
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        errors += label_selector_errors("spec.selector", selector)
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            errors.append(invalid("spec.selector", shown_selector(selector), f"empty selector is invalid for {word}"))
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    matches = selects(selector, labels or {}) if not _is_invalid_selector(selector) else None
    if matches is None:
        return [*errors, invalid("spec.selector", shown_selector(selector), "invalid label selector")]
    if selector and not matches:
        errors.append(invalid("spec.template.metadata.labels", shown_map(labels), _MISMATCH))
    elif selector is None:
        # A nil selector matches nothing.
        errors.append(invalid("spec.template.metadata.labels", shown_map(labels), _MISMATCH))
    errors += template_errors("spec.template", template)
    return errors + _always("spec.template.spec", template, kind)


def _is_invalid_selector(selector: JSON) -> bool:
    """Whether a selector cannot be converted (LabelSelectorAsSelector fails)."""
    if not selector:
        return False
    return bool(label_selector_errors("", selector))


def _always(path: str, template: JSON, kind: str) -> Errors:
    spec = template.get("spec") or {}
    errors: Errors = []
    if spec.get("restartPolicy") != "Always":
        errors.append(one_of(f"{path}.restartPolicy", spec.get("restartPolicy", ""), ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden(f"{path}.activeDeadlineSeconds", detail))
    return errors


def deployment_errors(deployment: JSON) -> Errors:
    """ValidateDeployment."""
    spec = deployment.get("spec") or {}
    errors = not_negative("spec.replicas", spec.get("replicas"))
    errors += _selector_and_template(spec, "deployment", "ReplicaSet")
    errors += _deployment_strategy(spec.get("strategy") or {})
    for name in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        errors += not_negative(f"spec.{name}", spec.get(name))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        errors.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def _deployment_strategy(strategy: JSON) -> Errors:
    kind, rolling, place = strategy.get("type", ""), strategy.get("rollingUpdate"), "spec.strategy"
    if kind == "Recreate":
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [forbidden(f"{place}.rollingUpdate", detail)]
    if kind != "RollingUpdate":
        return [one_of(place, internal(strategy, "apps.DeploymentStrategy"), ("Recreate", "RollingUpdate"))]
    if rolling is None:
        return [required(f"{place}.rollingUpdate", "this should be defaulted and never be nil")]
    down, up = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    place = f"{place}.rollingUpdate"
    errors = positive_or_percent_errors(f"{place}.maxUnavailable", down)
    errors += positive_or_percent_errors(f"{place}.maxSurge", up)
    if _share(down) == 0 and _share(up) == 0:
        errors.append(invalid(f"{place}.maxUnavailable", down, "may not be 0 when `maxSurge` is 0"))
    return errors + over_100_percent_errors(f"{place}.maxUnavailable", down)


def deployment_update_errors(deployment: JSON, old: JSON) -> Errors:
    """ValidateDeploymentUpdate: the selector is immutable."""
    return deployment_errors(deployment) + _immutable_selector(deployment.get("spec") or {}, old.get("spec") or {})


def _counts(status: JSON, *names: str) -> Errors:
    errors: Errors = []
    for name in names:
        errors += not_negative(f"status.{name}", status.get(name))
    return errors


def _at_most(status: JSON, *names: str, ready: str = "readyReplicas") -> Errors:
    total = status.get("replicas", 0)
    errors = [invalid(f"status.{n}", status.get(n, 0), _MORE) for n in names if status.get(n, 0) > total]
    available = status.get("availableReplicas", 0)
    if available > status.get("readyReplicas", 0):
        errors.append(invalid("status.availableReplicas", available, f"cannot be greater than {ready}"))
    return errors


def _collisions(status: JSON, old: JSON) -> Errors:
    new, before = status.get("collisionCount"), (old.get("status") or {}).get("collisionCount")
    if before is not None and (new is None or new < before):
        return [invalid("status.collisionCount", new or 0, "cannot be decremented")]
    return []


def deployment_status_errors(deployment: JSON, old: JSON) -> Errors:
    """ValidateDeploymentStatusUpdate."""
    status = deployment.get("status") or {}
    errors = _counts(
        status,
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    )
    errors += _at_most(status, "updatedReplicas", "readyReplicas", "availableReplicas")
    return errors + _collisions(status, old)


def replica_set_errors(replicas: JSON) -> Errors:
    """ValidateReplicaSet."""
    spec = replicas.get("spec") or {}
    errors = not_negative("spec.replicas", spec.get("replicas"))
    errors += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    return errors + _selector_and_template(spec, "deployment", "ReplicaSet")


def replica_set_update_errors(replicas: JSON, old: JSON) -> Errors:
    """ValidateReplicaSetUpdate: the selector is immutable."""
    return replica_set_errors(replicas) + _immutable_selector(replicas.get("spec") or {}, old.get("spec") or {})


def replica_set_status_errors(replicas: JSON, old: JSON) -> Errors:
    """ValidateReplicaSetStatusUpdate."""
    status = replicas.get("status") or {}
    names = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    errors = _counts(status, *names, "observedGeneration", "terminatingReplicas")
    return errors + _at_most(status, "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


def controller_errors(controller: JSON) -> Errors:
    """ValidateReplicationController."""
    spec = controller.get("spec") or {}
    selector, template = spec.get("selector") or {}, spec.get("template")
    errors = not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    if not selector:
        errors.append(required("spec.selector"))
    if spec.get("replicas") is None:
        errors.append(required("spec.replicas"))
    errors += not_negative("spec.replicas", spec.get("replicas"))
    if template is None:
        return [*errors, required("spec.template")]
    labels = (template.get("metadata") or {}).get("labels")
    if selector and any((labels or {}).get(key) != value for key, value in selector.items()):
        errors.append(invalid("spec.template.metadata.labels", shown_map(labels), _MISMATCH))
    errors += template_errors("spec.template", template)
    return errors + _always("spec.template.spec", template, "ReplicationController")


def controller_status_errors(controller: JSON, old: JSON) -> Errors:
    """ValidateReplicationControllerStatusUpdate."""
    return replica_set_status_errors(controller, old)


def stateful_set_errors(stateful: JSON) -> Errors:
    """ValidateStatefulSet."""
    return _stateful_spec(stateful.get("spec") or {}, update=False)


def _stateful_spec(spec: JSON, *, update: bool) -> Errors:
    policy = spec.get("podManagementPolicy", "")
    errors: Errors = []
    if not policy:
        errors.append(required("spec.podManagementPolicy"))
    elif policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    errors += _stateful_strategy(spec.get("updateStrategy") or {})
    retention = spec.get("persistentVolumeClaimRetentionPolicy")
    for name in ("whenDeleted", "whenScaled") if retention is not None else ():
        if retention.get(name, "") not in ("Retain", "Delete"):
            place = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
            errors.append(one_of(place, retention.get(name, ""), ("Retain", "Delete")))
    for position, claim in enumerate(() if update else spec.get("volumeClaimTemplates") or ()):
        errors += claim_spec_errors(f"spec.volumeClaimTemplates[{position}].spec", claim.get("spec") or {})
    errors += not_negative("spec.replicas", spec.get("replicas"))
    errors += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    errors += not_negative("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
    if spec.get("serviceName") and not update:
        errors += short_name_errors("spec.serviceName", spec["serviceName"])
    return errors + _stateful_template(spec)


def _stateful_strategy(strategy: JSON) -> Errors:
    kind, rolling, place = strategy.get("type", ""), strategy.get("rollingUpdate"), "spec.updateStrategy"
    if not kind:
        return [required(place)]
    if kind == "OnDelete":
        shown = internal(rolling, "*apps.RollingUpdateStatefulSetStrategy")
        detail = "only allowed for updateStrategy 'RollingUpdate'"
        return [] if rolling is None else [invalid(f"{place}.rollingUpdate", shown, detail)]
    if kind != "RollingUpdate":
        shown = internal(strategy, "apps.StatefulSetUpdateStrategy")
        return [invalid(place, shown, "must be 'RollingUpdate' or 'OnDelete'")]
    if rolling is None:
        return []
    errors = not_negative(f"{place}.rollingUpdate.partition", rolling.get("partition"))
    down, at = rolling.get("maxUnavailable"), f"{place}.rollingUpdate.maxUnavailable"
    if down is not None:
        errors += positive_or_percent_errors(at, down)
        if _share(down) == 0:
            errors.append(invalid(at, down, "cannot be 0"))
        errors += over_100_percent_errors(at, down)
    return errors


def _stateful_template(spec: JSON) -> Errors:
    selector, template = spec.get("selector"), spec.get("template") or {}
    errors: Errors = []
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        errors += label_selector_errors("spec.selector", selector)
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            errors.append(
                invalid("spec.selector", shown_selector(selector), "empty selector is invalid for statefulset")
            )
    meta = template.get("metadata") or {}
    if _is_invalid_selector(selector):
        errors.append(invalid("spec.selector", shown_selector(selector), ""))
    else:
        if selector != {} and not selects(selector, meta.get("labels") or {}):
            errors.append(invalid("spec.template.metadata.labels", shown_map(meta.get("labels")), _MISMATCH))
        checked = _with_claims(template, spec.get("volumeClaimTemplates") or ())
        errors += template_errors("spec.template", checked)
        errors += labels_errors("spec.template.labels", meta.get("labels"))
        errors += annotations_errors("spec.template.annotations", meta.get("annotations"))
        notes = meta.get("annotations")
        errors += pod_annotation_errors("spec.template.annotations", notes, template.get("spec") or {})
    return errors + _always("spec.template.spec", template, "StatefulSet")


def _with_claims(template: JSON, claims: JSON) -> JSON:
    """The template with a volume for each claim template, and without what the controller sets."""
    spec = {
        name: value for name, value in (template.get("spec") or {}).items() if name not in ("subdomain", "hostname")
    }
    names = [(claim.get("metadata") or {}).get("name", "") for claim in claims]
    made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(names)]
    kept = [volume for volume in spec.get("volumes") or () if volume.get("name") not in names]
    return {**template, "spec": {**spec, "volumes": made + kept}}


def stateful_set_update_errors(stateful: JSON, old: JSON) -> Errors:
    """ValidateStatefulSetUpdate: only some fields may change."""
    spec, before = stateful.get("spec") or {}, old.get("spec") or {}
    errors = _stateful_spec(spec, update=True)
    free = [
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    ]
    new, kept = ({key: value for key, value in side.items() if key not in free} for side in (spec, before))
    if not equal_ignoring_empty(new, kept):
        errors.append(
            forbidden(
                "spec",
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
                "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
                "'minReadySeconds' are forbidden",
            )
        )
    return errors


def stateful_set_status_errors(stateful: JSON, old: JSON) -> Errors:
    """ValidateStatefulSetStatusUpdate."""
    status = stateful.get("status") or {}
    names = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    errors = _counts(status, "replicas", *names, "observedGeneration", "collisionCount")
    return errors + _at_most(status, *names, ready="status.readyReplicas") + _collisions(status, old)


def daemon_set_errors(daemons: JSON) -> Errors:
    """ValidateDaemonSet."""
    spec = daemons.get("spec") or {}
    selector, template = spec.get("selector"), spec.get("template") or {}
    errors = label_selector_errors("spec.selector", selector)
    labels = (template.get("metadata") or {}).get("labels")
    if not _is_invalid_selector(selector) and not selects(selector, labels or {}):
        errors.append(invalid("spec.template.metadata.labels", shown_map(labels), _MISMATCH))
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid("spec.selector", shown_selector(selector), "empty selector is invalid for daemonset"))
    errors += template_errors("spec.template", template)
    errors += _always("spec.template.spec", template, "DaemonSet")
    errors += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    errors += _daemon_strategy(spec.get("updateStrategy") or {})
    return errors + not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))


def _daemon_strategy(strategy: JSON) -> Errors:
    kind, rolling, place = strategy.get("type", ""), strategy.get("rollingUpdate"), "spec.updateStrategy"
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        return [one_of(place, internal(strategy, "apps.DaemonSetUpdateStrategy"), ("RollingUpdate", "OnDelete"))]
    if rolling is None:
        return [required(f"{place}.rollingUpdate")]
    down, up, place = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0), f"{place}.rollingUpdate"
    errors = positive_or_percent_errors(f"{place}.maxUnavailable", down)
    errors += positive_or_percent_errors(f"{place}.maxSurge", up)
    errors += over_100_percent_errors(f"{place}.maxUnavailable", down)
    errors += over_100_percent_errors(f"{place}.maxSurge", up)
    if _share(down) and _share(up):
        errors.append(invalid(f"{place}.maxSurge", up, "may not be set when maxUnavailable is non-zero"))
    elif not _share(down) and not _share(up):
        errors.append(required(f"{place}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def daemon_set_update_errors(daemons: JSON, old: JSON) -> Errors:
    """ValidateDaemonSetUpdate: the selector is immutable."""
    return _immutable_selector(daemons.get("spec") or {}, old.get("spec") or {}) + daemon_set_errors(daemons)


def daemon_set_status_errors(daemons: JSON, old: JSON) -> Errors:
    """ValidateDaemonSetStatusUpdate."""
    status = daemons.get("status") or {}
    errors = _counts(
        status,
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    )
    return errors + _collisions(status, old)


def revision_errors(revision: JSON) -> Errors:
    """ValidateControllerRevisionCreate."""
    errors = not_negative("revision", revision.get("revision"))
    data = revision.get("data")
    if data is None:
        errors.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        errors.append(required("data", "data must be a valid JSON object"))
    return errors


def revision_update_errors(revision: JSON, old: JSON) -> Errors:
    """ValidateControllerRevisionUpdate: the data are immutable."""
    errors = not_negative("revision", revision.get("revision"))
    same_data = revision.get("data") == old.get("data")
    return errors if same_data else [*errors, invalid("data", revision.get("data"), IMMUTABLE)]
