"""Validates containers, init containers and ephemeral containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    duplicate,
    each,
    forbidden,
    invalid,
    not_found,
    one_of,
    required,
    short_name_errors,
    too_long,
)
from kubewright.apiserver.builtin.validation.formats import port_name_errors, port_number_errors
from kubewright.apiserver.builtin.validation.pods.environment import environment_errors
from kubewright.apiserver.builtin.validation.pods.mounts import devices_errors, mounts_errors
from kubewright.apiserver.builtin.validation.pods.probes import lifecycle_errors, probes_errors
from kubewright.apiserver.builtin.validation.pods.resources import container_resource_errors
from kubewright.apiserver.builtin.validation.pods.security import container_security_errors
from kubewright.apiserver.builtin.validation.pods.volume_sources import pull_policy_errors

__all__ = ("PodContext", "containers_errors", "ephemeral_errors", "image_padding_errors", "init_errors")

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MESSAGES: Final = ("File", "FallbackToLogsOnError")
_NOT_EPHEMERAL: Final = ("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules")
_NOT_EPHEMERAL_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle")


@dataclass(frozen=True, slots=True)
class PodContext:
    """What the validation of a container needs to know of its pod."""

    volumes: Mapping[str, JSON]
    claims: frozenset[str]
    restart_policy: str
    host_users: bool
    grace: int | None
    system: JSON


def containers_errors(path: str, containers: JSON, pod: PodContext) -> Errors:
    """validateContainers."""
    if not containers:
        return [required(path)]
    errors: Errors = []
    names: set[str] = set()
    for position, container in enumerate(containers):
        place, name = f"{path}[{position}]", container.get("name", "")
        errors += _common(place, container, pod)
        if name in names:
            errors.append(duplicate(f"{place}.name", name))
        names.add(name)
        if container.get("lifecycle") is not None:
            errors += lifecycle_errors(f"{place}.lifecycle", container["lifecycle"], pod.grace, pod.system)
        errors += probes_errors(place, container, pod.grace)
        errors += _restart_errors(place, container)
    return errors + _host_port_errors(path, containers)


def init_errors(path: str, containers: JSON, regular: JSON, pod: PodContext) -> Errors:
    """validateInitContainers, restartable ones included."""
    errors: Errors = []
    names = {container.get("name", "") for container in regular or ()}
    for position, container in enumerate(containers or ()):
        place, name = f"{path}[{position}]", container.get("name", "")
        errors += _common(place, container, pod)
        policy = container.get("restartPolicy")
        errors += _init_restart_errors(place, container)
        if name in names:
            errors.append(duplicate(f"{place}.name", name))
        elif name:
            names.add(name)
        errors += _host_port_errors(path, [container])
        if policy == "Always":
            if container.get("lifecycle") is not None:
                errors += lifecycle_errors(f"{place}.lifecycle", container["lifecycle"], pod.grace, pod.system)
            errors += probes_errors(place, container, pod.grace)
            continue
        detail = "may not be set for init containers without restartPolicy=Always"
        for part in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(part) is not None:
                errors.append(forbidden(f"{place}.{part}", detail))
    return errors


def ephemeral_errors(path: str, spec: JSON, pod: PodContext) -> Errors:
    """validateEphemeralContainers."""
    errors: Errors = []
    others = {
        container.get("name", "") for part in ("containers", "initContainers") for container in spec.get(part) or ()
    }
    names = set(others)
    for position, container in enumerate(spec.get("ephemeralContainers") or ()):
        place, name = f"{path}[{position}]", container.get("name", "")
        errors += _common(place, container, pod) + _padding(place, container)
        if name in names:
            errors.append(duplicate(f"{place}.name", name))
        names.add(name)
        target = container.get("targetContainerName", "")
        if target and target not in others:
            errors.append(not_found(f"{place}.targetContainerName", target))
        errors += _ephemeral_fields(place, container)
    return errors


def _ephemeral_fields(path: str, container: JSON) -> Errors:
    cannot = "cannot be set for an Ephemeral Container"
    set_fields = [name for name in (*_NOT_EPHEMERAL, *_NOT_EPHEMERAL_PROBES) if container.get(name)]
    errors = [forbidden(f"{path}.{name}", cannot) for name in set_fields]
    errors += [
        forbidden(f"{path}.volumeMounts[{position}].{name}", cannot)
        for position, mount in enumerate(container.get("volumeMounts") or ())
        for name in ("subPath", "subPathExpr")
        if mount.get(name)
    ]
    return errors


def image_padding_errors(path: str, containers: JSON) -> Errors:
    """Images with leading or trailing spaces, which are rejected in pods but not in templates."""
    errors: Errors = []
    for position, container in enumerate(containers or ()):
        errors += _padding(f"{path}[{position}]", container)
    return errors


def _padding(path: str, container: JSON) -> Errors:
    image = container.get("image", "")
    detail = "must not have leading or trailing whitespace"
    return [] if image == image.strip() else [invalid(f"{path}.image", image, detail)]


def _common(path: str, container: JSON, pod: PodContext) -> Errors:  # hot
    name = container.get("name", "")
    errors = short_name_errors(f"{path}.name", name) if name else [required(f"{path}.name")]
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    policy = container.get("terminationMessagePolicy", "")
    if policy not in _MESSAGES:
        place = f"{path}.terminationMessagePolicy"
        errors.append(one_of(place, policy, _MESSAGES) if policy else required(place))
    if container.get("ports"):
        errors += _ports_errors(f"{path}.ports", container["ports"])
    errors += environment_errors(path, container)
    mounts, devices = container.get("volumeMounts") or (), container.get("volumeDevices") or ()
    if mounts:
        errors += mounts_errors(f"{path}.volumeMounts", mounts, devices, pod.volumes, container)
    if devices:
        errors += devices_errors(f"{path}.volumeDevices", devices, mounts, pod.volumes)
    errors += pull_policy_errors(f"{path}.imagePullPolicy", container.get("imagePullPolicy", ""))
    errors += container_resource_errors(f"{path}.resources", container.get("resources"), pod.claims)
    errors += _resize_errors(f"{path}.resizePolicy", container.get("resizePolicy") or (), pod.restart_policy)
    context = container.get("securityContext")
    return errors + container_security_errors(f"{path}.securityContext", context, host_users=pod.host_users)


def _ports_errors(path: str, ports: JSON) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    for position, port in enumerate(ports):
        place, name = f"{path}[{position}]", port.get("name", "")
        if name:
            wrong = port_name_errors(name)
            errors += each(f"{place}.name", name, wrong)
            if not wrong and name in names:
                errors.append(duplicate(f"{place}.name", name))
            names.add(name)
        number, host = port.get("containerPort", 0), port.get("hostPort", 0)
        if number == 0:
            errors.append(required(f"{place}.containerPort"))
        else:
            errors += each(f"{place}.containerPort", number, port_number_errors(number))
        if host:
            errors += each(f"{place}.hostPort", host, port_number_errors(host))
        protocol = port.get("protocol", "")
        if protocol not in _PROTOCOLS:
            at = f"{place}.protocol"
            errors.append(one_of(at, protocol, _PROTOCOLS) if protocol else required(at))
    return errors


def _host_port_errors(path: str, containers: JSON) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for number, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in seen:
                errors.append(duplicate(f"{path}[{number}].ports[{position}].hostPort", key))
            seen.add(key)
    return errors


def _resize_errors(path: str, policies: JSON, restart_policy: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for position, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            errors.append(duplicate(f"{path}[{position}]", resource))
        seen.add(resource)
        if resource not in ("cpu", "memory"):
            errors.append(one_of(path, resource, ("cpu", "memory")) if resource else required(path))
        if restart not in ("NotRequired", "RestartContainer"):
            errors.append(one_of(path, restart, ("NotRequired", "RestartContainer")) if restart else required(path))
        if restart_policy == "Never" and restart != "NotRequired":
            errors.append(invalid(path, restart, "must be 'NotRequired' when `restartPolicy` is 'Never'"))
    return errors


def _init_restart_errors(path: str, container: JSON) -> Errors:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None:
        detail = "must specify restartPolicy when restart rules are used"
        return [required(f"{path}.restartPolicy", detail)] if rules else []
    if policy == "Always":
        detail = "restartPolicyRules are not allowed for init containers with restart policy Always"
        return [forbidden(f"{path}.restartPolicyRules", detail)] if rules else []
    return _restart_errors(path, container)


def _restart_errors(path: str, container: JSON) -> Errors:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    errors: Errors = []
    if policy is None:
        if not rules:
            return []
        detail = "must specify restartPolicy when restart rules are used"
        errors.append(required(f"{path}.restartPolicy", detail))
    elif policy not in ("Always", "Never", "OnFailure"):
        errors.append(one_of(f"{path}.restartPolicy", policy, ("Always", "Never", "OnFailure")))
    if len(rules) > 20:
        errors.append(too_long(f"{path}.restartPolicyRules", 20))
    for position, rule in enumerate(rules):
        errors += _rule_errors(f"{path}.restartPolicyRules[{position}]", rule)
    return errors


def _rule_errors(path: str, rule: JSON) -> Errors:
    errors: Errors = []
    if rule.get("action", "") != "Restart":
        errors.append(one_of(f"{path}.action", rule.get("action", ""), ("Restart",)))
    codes = rule.get("exitCodes")
    if codes is None:
        return [*errors, required(f"{path}.exitCodes", "must be specified")]
    if codes.get("operator", "") not in ("In", "NotIn"):
        errors.append(one_of(f"{path}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn")))
    if len(codes.get("values") or ()) > 255:
        errors.append(too_long(f"{path}.exitCodes.values", 255))
    return errors
