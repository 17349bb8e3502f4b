"""Validates updates of the status of pods, which kubelets write."""

from __future__ import annotations

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
)
from kubewright.apiserver.builtin.validation.formats import id_errors, ip_errors, parse_ip
from kubewright.apiserver.builtin.validation.pods.pods import annotation_change_errors

__all__ = ("pod_status_errors",)


def pod_status_errors(pod: JSON, old: JSON) -> Errors:
    """ValidatePodStatusUpdate."""
    status, before = pod.get("status") or {}, old.get("status") or {}
    spec, old_spec = pod.get("spec") or {}, old.get("spec") or {}
    errors = annotation_change_errors(pod, old) + _conditions(status.get("conditions") or ())
    if spec.get("nodeName", "") != old_spec.get("nodeName", ""):
        errors.append(forbidden("status.nodeName", "may not be changed directly"))
    nominated = status.get("nominatedNodeName", "")
    if nominated and nominated != before.get("nominatedNodeName", ""):
        errors += long_name_errors("status.nominatedNodeName", nominated)
        if old_spec.get("nodeName"):
            detail = "may not be set on pods that are already bound to a node"
            errors.append(forbidden("status.nominatedNodeName", detail))
    if status.get("observedGeneration", 0) < 0:
        detail = "must be a non-negative integer"
        errors.append(invalid("status.observedGeneration", status["observedGeneration"], detail))
    if status.get("qosClass", "") != before.get("qosClass", ""):
        errors.append(invalid("status.qosClass", status.get("qosClass", ""), IMMUTABLE))
    for part in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        errors += _transitions(part, status.get(part) or (), before.get(part) or (), old_spec)
    errors += _claims(status.get("resourceClaimStatuses") or (), spec)
    errors += _addresses("podIPs", status.get("podIPs") or (), before.get("podIPs") or ())
    errors += _host_addresses(status, before)
    for part in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        errors += _users(f"status.{part}", status.get(part) or ())
    return errors


def _conditions(conditions: JSON) -> Errors:
    errors: Errors = []
    for position, condition in enumerate(conditions):
        if condition.get("observedGeneration", 0) < 0:
            place = f"status.conditions[{position}].observedGeneration"
            errors.append(invalid(place, condition["observedGeneration"], "must be a non-negative integer"))
        kind = condition.get("type", "")
        if kind not in ("PodScheduled", "Ready", "Initialized"):
            errors += label_name_errors(f"status.conditions[{position}].Type", kind)
    return errors


def _transitions(part: str, new: JSON, old: JSON, spec: JSON) -> Errors:
    """ValidateContainerStateTransition: a terminated container that may not restart stays terminated."""
    policy = spec.get("restartPolicy")
    names = {status.get("name"): status for status in new}
    listed = {"containerStatuses": "containers", "initContainerStatuses": "initContainers"}.get(part, "")
    containers = {container.get("name"): container for container in spec.get(listed) or ()}
    errors: Errors = []
    for position, status in enumerate(old):
        ended = (status.get("state") or {}).get("terminated")
        now = names.get(status.get("name"))
        if ended is None or now is None or (now.get("state") or {}).get("terminated") is not None:
            continue
        if listed and _restarts(containers.get(status.get("name")), policy, ended.get("exitCode", 0)):
            continue
        detail = "may not be transitioned to non-terminated state"
        errors.append(forbidden(f"status.{part}[{position}].state", detail))
    return errors


def _restarts(container: JSON, policy: str | None, code: int) -> bool:
    own = (container or {}).get("restartPolicy") or policy
    for rule in (container or {}).get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        if (code in (codes.get("values") or ())) == (codes.get("operator") == "In"):
            return bool(rule.get("action") == "Restart")
    return own == "Always" or (own == "OnFailure" and code != 0)


def _claims(statuses: JSON, spec: JSON) -> Errors:
    errors: Errors = []
    known = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for position, status in enumerate(statuses):
        place, name = f"status.resourceClaimStatuses[{position}].name", status.get("name", "")
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(place, name, detail))
        if name in seen:
            errors.append(duplicate(place, name))
        seen.add(name)
        if status.get("resourceClaimName") is not None:
            errors += long_name_errors(place, status["resourceClaimName"])
    return errors


def _addresses(part: str, addresses: JSON, before: JSON) -> Errors:
    old = {address.get("ip") for address in before}
    errors: Errors = []
    texts = [address.get("ip", "") for address in addresses]
    for position, text in enumerate(texts):
        if text not in old:
            errors += each(f"status.{part}[{position}]", text, ip_errors(text))
    families = [address.version for text in texts if (address := parse_ip(text))]
    if len(texts) > 1 and (len(texts) > 2 or len(set(families)) != 2):
        shown = [{"IP": text} for text in texts]
        detail = "may specify no more than one IP for each IP family"
        errors.append(invalid(f"status.{part}", shown, detail))
    return errors


def _host_addresses(status: JSON, before: JSON) -> Errors:
    addresses = status.get("hostIPs") or ()
    if not addresses:
        return []
    errors: Errors = []
    if status.get("hostIP", "") != addresses[0].get("ip", ""):
        errors.append(invalid("status.hostIPs[0].ip", addresses[0].get("ip", ""), "must be equal to `hostIP`"))
    return errors + _addresses("hostIPs", addresses, before.get("hostIPs") or ())


def _users(path: str, statuses: JSON) -> Errors:
    errors: Errors = []
    for position, status in enumerate(statuses):
        user = (status.get("user") or {}).get("linux")
        if user is None:
            continue
        place = f"{path}[{position}].user.linux"
        for name in ("uid", "gid"):
            errors += each(f"{place}.{name}", user.get(name, 0), id_errors(user.get(name, 0)))
        for number, group in enumerate(user.get("supplementalGroups") or ()):
            errors += each(f"{place}.supplementalGroups[{number}]", group, id_errors(group))
    return errors
