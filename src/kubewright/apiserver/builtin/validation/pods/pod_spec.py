"""Validates the spec of a pod, in a pod or in a template (ValidatePodSpec)."""

from __future__ import annotations

from typing import Final

from kubewright.api.go_text import quoted
from kubewright.api.quantity import Quantity
from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.golang.quantities import amount
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    annotations_errors,
    duplicate,
    each,
    forbidden,
    invalid,
    label_name_errors,
    labels_errors,
    long_name_errors,
    not_found,
    one_of,
    required,
    short_name_errors,
    too_long,
)
from kubewright.apiserver.builtin.validation.formats import (
    dns_label,
    dns_subdomain,
    ip_errors,
    range_error,
    search_domain_errors,
)
from kubewright.apiserver.builtin.validation.pods.affinity import (
    affinity_errors,
    tolerations_errors,
    topology_spread_errors,
)
from kubewright.apiserver.builtin.validation.pods.containers import (
    PodContext,
    containers_errors,
    ephemeral_errors,
    init_errors,
)
from kubewright.apiserver.builtin.validation.pods.paths import descending_path_errors
from kubewright.apiserver.builtin.validation.pods.resources import container_resource_errors, pod_resource_errors
from kubewright.apiserver.builtin.validation.pods.security import (
    annotation_mismatch_errors,
    host_process_errors,
    pod_security_errors,
)
from kubewright.apiserver.builtin.validation.pods.volumes import volumes_errors

__all__ = ("all_containers", "pod_annotation_errors", "pod_spec_errors", "preemption_errors", "template_errors")

_RESTARTS: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MIRROR: Final = "kubernetes.io/config.mirror"
_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_WINDOWS: Final = "cannot be set for a windows pod"


def all_containers(path: str, spec: JSON) -> list[tuple[str, JSON]]:
    """All containers with their paths: init, regular, ephemeral."""
    return [
        (f"{path}.{part}[{position}]", container)
        for part in ("initContainers", "containers", "ephemeralContainers")
        for position, container in enumerate(spec.get(part) or ())
    ]


def template_errors(path: str, template: JSON) -> Errors:
    """ValidatePodTemplateSpec."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations = meta.get("annotations")
    errors = labels_errors(f"{path}.labels", meta.get("labels"))
    errors += annotations_errors(f"{path}.annotations", annotations)
    errors += pod_annotation_errors(f"{path}.annotations", annotations, spec)
    errors += pod_spec_errors(f"{path}.spec", spec)
    if annotations:
        errors += annotation_mismatch_errors(f"{path}.spec", annotations, spec, all_containers(f"{path}.spec", spec))
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", detail))
    return errors


def pod_annotation_errors(path: str, annotations: JSON, spec: JSON) -> Errors:
    """ValidatePodSpecificAnnotations."""
    if not annotations:
        return []
    errors: Errors = []
    if _MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{_MIRROR}]", annotations[_MIRROR], detail))
    cost = annotations.get(_COST)
    if cost is not None and not _is_cost(cost):
        errors.append(invalid(f"{path}[{_COST}]", cost, "must be a 32bit integer"))
    for key, value in annotations.items():
        if key.startswith(_SECCOMP) or key == _SECCOMP_POD:
            errors += _seccomp_note(f"{path}.{key}", value)
    names = {container.get("name") for _, container in all_containers("", spec)}
    for key, value in annotations.items():
        if not key.startswith(_APP_ARMOR):
            continue
        name = key.removeprefix(_APP_ARMOR)
        if name not in names:
            errors.append(invalid(f"{path}[{key}]", name, "container not found"))
        if value not in ("", "runtime/default", "unconfined") and not value.startswith("localhost/"):
            errors.append(invalid(f"{path}[{key}]", value, f"invalid AppArmor profile name: {quoted(value)}"))
    return errors


def _is_cost(text: str) -> bool:
    if not text or text[0] in "+ " or (text != "0" and text.lstrip("-").startswith("0")):
        return False
    return text.lstrip("-").isascii() and text.lstrip("-").isdigit() and -(2**31) <= int(text) < 2**31


def _seccomp_note(path: str, profile: str) -> Errors:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return []
    if profile.startswith("localhost/"):
        return descending_path_errors(path, profile.removeprefix("localhost/"))
    return [invalid(path, profile, "must be a valid seccomp profile")]


def pod_spec_errors(path: str, spec: JSON, meta: JSON = None) -> Errors:  # hot
    """ValidatePodSpec; `meta` is the metadata of the pod, None in a template."""
    errors: Errors = []
    is_pod = meta is not None
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    name = meta.get("name", "") if is_pod else ""
    volumes, wrong = volumes_errors(f"{path}.volumes", spec.get("volumes"), name, is_pod=is_pod)
    errors += wrong
    claims = spec.get("resourceClaims") or ()
    errors += _resource_claims(f"{path}.resourceClaims", claims, meta)
    pod = PodContext(
        volumes,
        frozenset(claim["name"] for claim in claims if claim.get("name")),
        spec.get("restartPolicy", ""),
        spec.get("hostUsers") is not False,
        grace,
        spec.get("os"),
    )
    errors += containers_errors(f"{path}.containers", spec.get("containers"), pod)
    if spec.get("initContainers"):
        errors += init_errors(f"{path}.initContainers", spec["initContainers"], spec.get("containers"), pod)
    if spec.get("ephemeralContainers"):
        errors += ephemeral_errors(f"{path}.ephemeralContainers", spec, pod)
    if spec.get("resources") is not None:
        errors += _pod_resources(path, spec, pod.claims)
    if spec.get("hostNetwork"):
        errors += _host_network(path, spec, is_pod=is_pod)
    return errors + _policies(path, spec) + _placement(path, spec) + _names(path, spec) + _rest(path, spec)


def _resource_claims(path: str, claims: JSON, meta: JSON) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for position, claim in enumerate(claims):
        if meta and _MIRROR in (meta.get("annotations") or {}):
            errors.append(forbidden("", "static pods do not support resource claims"))
            continue
        place, name = f"{path}[{position}]", claim.get("name", "")
        if not name:
            errors.append(required(f"{place}.name"))
        elif name in seen:
            errors.append(duplicate(f"{place}.name", name))
        else:
            errors += short_name_errors(f"{place}.name", name)
            seen.add(name)
        chosen = [part for part in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(part) is not None]
        if len(chosen) == 2:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid(place, internal(claim, "core.PodResourceClaim"), detail))
        elif not chosen:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(place, internal(claim, "core.PodResourceClaim"), detail))
        for part in chosen:
            errors += long_name_errors(f"{place}.{part}", claim[part])
    return errors


def _aggregate_request(spec: JSON, name: str) -> Quantity:
    """What the containers of a pod request (AggregateContainerRequests): init containers run one after the other."""

    def request(container: JSON) -> Quantity:
        return amount(((container.get("resources") or {}).get("requests") or {}).get(name, "0"))

    total = sum(map(request, spec.get("containers") or ()), Quantity("0"))
    sidecars, most = Quantity("0"), Quantity("0")
    for container in spec.get("initContainers") or ():
        needed = sidecars + request(container)
        if container.get("restartPolicy") == "Always":
            sidecars = needed
        most = max(most, needed)
    return max(total + sidecars, most)


def _pod_resources(path: str, spec: JSON, claims: frozenset[str]) -> Errors:
    resources, place = spec["resources"], f"{path}.resources"
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(place, "may not be set for a windows pod")]
    errors: Errors = []
    if resources.get("claims") is not None:
        errors.append(forbidden(f"{place}.claims", "claims may not be set for Resources at pod-level"))
    errors += pod_resource_errors(place, resources, claims)
    for name, value in (resources.get("requests") or {}).items():
        total = _aggregate_request(spec, name)
        if total > amount(value):
            detail = f"must be greater than or equal to aggregate container requests of {total.canonical}"
            errors.append(invalid(f"{place}.requests[{name}]", value, detail))
    limits = resources.get("limits") or {}
    for position, container in enumerate(spec.get("containers") or ()):
        for name, value in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and amount(value) > amount(limits[name]):
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                errors.append(invalid(f"{place}.containers[{position}][{name}].limits", value, detail))
    return errors


def _host_network(path: str, spec: JSON, *, is_pod: bool) -> Errors:
    errors: Errors = []
    for number, container in enumerate(spec.get("containers") or ()):
        for position, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                place = f"{path}.containers[{number}].ports[{position}].hostPort"
                errors.append(invalid(place, host, "must match `containerPort` when `hostNetwork` is true"))
    return errors


def _policies(path: str, spec: JSON) -> Errors:
    errors: Errors = []
    restart, dns = spec.get("restartPolicy", ""), spec.get("dnsPolicy", "")
    if restart not in _RESTARTS:
        place = f"{path}.restartPolicy"
        errors.append(one_of(place, restart, _RESTARTS) if restart else required(place))
    if dns not in _DNS:
        place = f"{path}.dnsPolicy"
        errors.append(one_of(place, dns, _DNS) if dns else required(place))
    errors += labels_errors(f"{path}.nodeSelector", spec.get("nodeSelector"))
    return errors + pod_security_errors(f"{path}.securityContext", spec)


def _placement(path: str, spec: JSON) -> Errors:
    errors = affinity_errors(f"{path}.affinity", spec.get("affinity"))
    errors += _dns_config(f"{path}.dnsConfig", spec)
    for position, gate in enumerate(spec.get("readinessGates") or ()):
        errors += label_name_errors(f"{path}.readinessGates[{position}].conditionType", gate.get("conditionType", ""))
    seen: set[str] = set()
    for position, gate in enumerate(spec.get("schedulingGates") or ()):
        place, name = f"{path}.schedulingGates[{position}]", gate.get("name", "")
        errors += label_name_errors(place, name)
        if name in seen:
            errors.append(duplicate(place, name))
        seen.add(name)
    errors += topology_spread_errors(f"{path}.topologySpreadConstraints", spec.get("topologySpreadConstraints"))
    errors += host_process_errors(path, spec, all_containers(path, spec))
    if spec.get("hostUsers") is False:
        errors += _user_namespace(path, spec)
    return errors


def _dns_config(path: str, spec: JSON) -> Errors:
    config, policy = spec.get("dnsConfig"), spec.get("dnsPolicy")
    servers = (config or {}).get("nameservers") or ()
    if policy == "None" and config is None:
        return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
    if policy == "None" and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        return [required(f"{path}.nameservers", detail)]
    if config is None:
        return []
    errors: Errors = []
    if len(servers) > 3:
        errors.append(invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers"))
    for position, server in enumerate(servers):
        errors += each(f"{path}.nameservers[{position}]", server, ip_errors(server))
    searches = config.get("searches") or ()
    if len(searches) > 32:
        errors.append(invalid(f"{path}.searches", searches, "must not have more than 32 search paths"))
    if len(" ".join(searches)) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        errors.append(invalid(f"{path}.searches", searches, detail))
    for position, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            errors += each(f"{path}.searches[{position}]", name, search_domain_errors(name))
    for position, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{position}]", "must not be empty"))
    return errors


def _user_namespace(path: str, spec: JSON) -> Errors:
    detail = "when `hostUsers` is false"
    pairs = (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
    errors = [forbidden(f"{path}.{shown}", detail) for name, shown in pairs if spec.get(name)]
    containers = all_containers(path, spec)
    return errors + [forbidden(f"{at}.volumeDevices", detail) for at, one in containers if one.get("volumeDevices")]


def _names(path: str, spec: JSON) -> Errors:
    errors: Errors = []
    override = spec.get("hostnameOverride")
    if override is not None:
        errors += _hostname_override(f"{path}.hostnameOverride", override, spec)
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            errors += long_name_errors(f"{path}.{name}", spec[name])
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, range_error(1, 2**31 - 1)))
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            errors += short_name_errors(f"{path}.{name}", spec[name])
    return errors


def _hostname_override(path: str, name: str, spec: JSON) -> Errors:
    errors: Errors = []
    if spec.get("setHostnameAsFQDN"):
        errors.append(forbidden(path, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        errors.append(forbidden(path, "may not be specified when hostNetwork is true"))
    if len(name) > 64:
        errors.append(too_long(path, 64))
    return errors + long_name_errors(path, name)


def preemption_errors(path: str, policy: str) -> Errors:
    """ValidatePreemptionPolicy."""
    if policy in ("PreemptLowerPriority", "Never"):
        return []
    return [one_of(path, policy, ("PreemptLowerPriority", "Never")) if policy else required(path)]


def _rest(path: str, spec: JSON) -> Errors:
    errors = tolerations_errors(f"{path}.tolerations", spec.get("tolerations"))
    for position, alias in enumerate(spec.get("hostAliases") or ()):
        place = f"{path}.hostAliases[{position}]"
        errors += each(f"{place}.ip", alias.get("ip", ""), ip_errors(alias.get("ip", "")))
        for number, host in enumerate(alias.get("hostnames") or ()):
            errors += long_name_errors(f"{place}.hostnames[{number}]", host)
    if spec.get("priorityClassName"):
        errors += long_name_errors(f"{path}.priorityClassName", spec["priorityClassName"])
    if spec.get("runtimeClassName") is not None:
        errors += long_name_errors(f"{path}.runtimeClassName", spec["runtimeClassName"])
    if spec.get("preemptionPolicy") is not None:
        errors += preemption_errors(f"{path}.preemptionPolicy", spec["preemptionPolicy"])
    if spec.get("overhead") is not None:
        errors += container_resource_errors(f"{path}.overhead", {"limits": spec["overhead"]}, ())
    if spec.get("os") is not None:
        errors += _system(path, spec)
    reference = spec.get("workloadRef")
    if reference is not None:
        errors += each(f"{path}.workloadRef.name", reference.get("name", ""), dns_subdomain(reference.get("name", "")))
        group = reference.get("podGroup", "")
        errors += each(f"{path}.workloadRef.podGroup", group, dns_label(group))
    return errors + _file_keys(path, spec)


def _system(path: str, spec: JSON) -> Errors:
    name = spec["os"].get("name", "")
    if not name:
        return [required(f"{path}.os.name")]
    if name not in ("linux", "windows"):
        return [one_of(f"{path}.os", name, ("linux", "windows"))]
    containers = all_containers(path, spec)
    context = spec.get("securityContext") or {}
    if name == "linux":
        detail = "windows options cannot be set for a linux pod"
        contexts = [(path, spec), *containers]
        return [
            forbidden(f"{at}.securityContext.windowsOptions", detail)
            for at, one in contexts
            if (one.get("securityContext") or {}).get("windowsOptions") is not None
        ]
    errors: Errors = []
    for part in _WINDOWS_POD:
        if part in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"):
            if spec.get(part) or (part in ("hostUsers", "shareProcessNamespace") and spec.get(part) is not None):
                errors.append(forbidden(f"{path}.{part}", _WINDOWS))
        elif context.get(part) is not None:
            errors.append(forbidden(f"{path}.securityContext.{part}", _WINDOWS))
    for at, container in containers:
        own = container.get("securityContext") or {}
        errors += [forbidden(f"{at}.securityContext.{part}", _WINDOWS) for part in _WINDOWS_CONTAINER if part in own]
    return errors


_WINDOWS_POD: Final = [
    "appArmorProfile",
    "seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "shareProcessNamespace",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
]
_WINDOWS_CONTAINER: Final = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
]


def _file_keys(path: str, spec: JSON) -> Errors:
    errors: Errors = []
    for place, container in all_containers(path, spec):
        for position, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            name = reference.get("volumeName", "")
            found = [volume for volume in spec.get("volumes") or () if volume.get("name") == name]
            at = f"{place}.env[{position}].valueFrom.fileKeyRef.volumeName"
            if not found:
                errors.append(not_found(at, name))
            elif found[-1].get("emptyDir") is None:
                errors.append(invalid(at, name, "referenced volume must be of type emptyDir"))
    return errors
