"""Validates security contexts of pods and containers."""

from __future__ import annotations

import re
from typing import Final

from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    choice_errors,
    duplicate,
    each,
    forbidden,
    invalid,
    one_of,
    required,
    too_long,
)
from kubewright.apiserver.builtin.validation.formats import dns_subdomain, id_errors
from kubewright.apiserver.builtin.validation.pods.paths import descending_path_errors

__all__ = ("annotation_mismatch_errors", "container_security_errors", "host_process_errors", "pod_security_errors")

_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL: Final = re.compile(rf"({_SEGMENT}[\./])*{_SEGMENT}")
_SYSCTL_RULE: Final = f"must have at most 253 characters and match regex ^({_SEGMENT}[\\./])*{_SEGMENT}$"
_IPC_SYSCTLS: Final = frozenset(
    [
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.shm",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.msg",
    ]
)
_NETBIOS: Final = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DOMAIN_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DOMAIN: Final = re.compile(rf"{_DOMAIN_LABEL}(?:\.{_DOMAIN_LABEL})*")
_USER: Final = "runAsUserName's User"


def pod_security_errors(path: str, spec: JSON) -> Errors:
    """validatePodSpecSecurityContext: the security context of a pod, and host namespaces."""
    context = spec.get("securityContext")
    if context is None:
        return []
    errors: Errors = []
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        if context.get(name) is not None:
            errors += each(f"{path}.{name}", context[name], id_errors(context[name]))
    for position, group in enumerate(context.get("supplementalGroups") or ()):
        errors += each(f"{path}.supplementalGroups[{position}]", group, id_errors(group))
    if spec.get("hostPID") and spec.get("shareProcessNamespace"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.shareProcessNamespace", True, detail))
    errors += _sysctls(f"{path}.sysctls", context.get("sysctls") or (), spec)
    errors += choice_errors(
        f"{path}.fsGroupChangePolicy", context.get("fsGroupChangePolicy"), ("Always", "OnRootMismatch")
    )
    errors += _seccomp(f"{path}.seccompProfile", context.get("seccompProfile"))
    errors += _windows(f"{path}.windowsOptions", context.get("windowsOptions"))
    errors += _app_armor(f"{path}.appArmorProfile", context.get("appArmorProfile"))
    policy = context.get("supplementalGroupsPolicy")
    errors += choice_errors(f"{path}.supplementalGroupsPolicy", policy, ("Merge", "Strict"))
    return errors + choice_errors(f"{path}.seLinuxChangePolicy", context.get("seLinuxChangePolicy"), ("Recursive",))


def container_security_errors(path: str, context: JSON, *, host_users: bool) -> Errors:
    """ValidateSecurityContext, of a container."""
    if context is None:
        return []
    errors: Errors = []
    for name in ("runAsUser", "runAsGroup"):
        if context.get(name) is not None:
            errors += each(f"{path}.{name}", context[name], id_errors(context[name]))
    mount = context.get("procMount")
    errors += choice_errors(f"{path}.procMount", mount, ("Default", "Unmasked"))
    if mount == "Unmasked" and host_users:
        errors.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    errors += _seccomp(f"{path}.seccompProfile", context.get("seccompProfile"))
    errors += _escalation(path, context)
    errors += _windows(f"{path}.windowsOptions", context.get("windowsOptions"))
    return errors + _app_armor(f"{path}.appArmorProfile", context.get("appArmorProfile"))


def _escalation(path: str, context: JSON) -> Errors:
    if context.get("allowPrivilegeEscalation") is not False:
        return []
    errors: Errors = []
    cannot = "cannot set `allowPrivilegeEscalation` to false and "
    if context.get("privileged"):
        errors.append(invalid(path, _shown(context), f"{cannot}`privileged` to true"))
    for name in (context.get("capabilities") or {}).get("add") or ():
        if name == "CAP_SYS_ADMIN":
            errors.append(invalid(path, _shown(context), f"{cannot}`capabilities.Add` CAP_SYS_ADMIN"))
    return errors


def _shown(context: JSON) -> JSON:
    return internal(context, "core.SecurityContext")


def _sysctls(path: str, sysctls: JSON, spec: JSON) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for position, sysctl in enumerate(sysctls):
        place, name = f"{path}[{position}].name", sysctl.get("name", "")
        if not name:
            errors.append(required(place))
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            errors.append(invalid(place, name, _SYSCTL_RULE))
        elif name in seen:
            errors.append(duplicate(place, name))
        errors += _host_sysctl(place, name, spec)
        seen.add(name)
    return errors


def _host_sysctl(path: str, name: str, spec: JSON) -> Errors:
    dotted = name.replace("/", ".") if name.find("/") != -1 and name.find("/") < (name + ".").find(".") else name
    if spec.get("hostNetwork") and dotted.startswith("net."):
        return [invalid(path, name, "may not be specified when 'hostNetwork' is true")]
    if spec.get("hostIPC") and (dotted in _IPC_SYSCTLS or dotted.startswith("fs.mqueue.")):
        return [invalid(path, name, "may not be specified when 'hostIPC' is true")]
    return []


def _seccomp(path: str, profile: JSON) -> Errors:
    if profile is None:
        return []
    errors: Errors = []
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        errors.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        errors.append(one_of(f"{path}.type", kind, _PROFILES))
    if kind == "Localhost":
        if local is None:
            errors.append(required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost"))
        else:
            errors += descending_path_errors(f"{path}.localhostProfile", local)
    elif local is not None:
        shown = internal(profile, "core.SeccompProfile")
        errors.append(invalid(f"{path}.localhostProfile", shown, "can only be set when seccomp type is Localhost"))
    return errors


def _app_armor(path: str, profile: JSON) -> Errors:
    if profile is None:
        return []
    kind, local, place = profile.get("type", ""), profile.get("localhostProfile"), f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is None or local == "":
            return [required(place, "must be set when AppArmor type is Localhost")]
        errors = [invalid(place, local, "must not be padded with whitespace")] if local != local.strip() else []
        return [*errors, too_long(place, 4095)] if len(local) > 4095 else errors
    if kind in _PROFILES:
        detail = "can only be set when AppArmor type is Localhost"
        return [] if local is None else [invalid(place, local, detail)]
    if not kind:
        return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    return [one_of(f"{path}.type", kind, _PROFILES)]


def _windows(path: str, options: JSON) -> Errors:
    if options is None:
        return []
    errors: Errors = []
    name, spec, user = (
        options.get("gmsaCredentialSpecName"),
        options.get("gmsaCredentialSpec"),
        options.get("runAsUserName"),
    )
    if name is not None:
        errors += each(f"{path}.gmsaCredentialSpecName", name, dns_subdomain(name))
    if spec == "":
        detail = "gmsaCredentialSpec cannot be an empty string"
        errors.append(invalid(f"{path}.gmsaCredentialSpec", spec, detail))
    elif spec is not None and len(spec) > 64 * 1024:
        errors.append(invalid(f"{path}.gmsaCredentialSpec", spec, "gmsaCredentialSpec size must be under 64 KiB"))
    if user is not None:
        errors += each(f"{path}.runAsUserName", user, _user_name(user))
    return errors


def _user_name(name: str) -> list[str]:
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        return ["runAsUserName cannot contain control characters"]
    if name.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, user = name.rpartition("\\")
    errors: list[str] = []
    if len(domain) >= 256:
        errors.append("runAsUserName's Domain length must be under 256 characters")
    if backslash and not _NETBIOS.fullmatch(domain) and not _DOMAIN.fullmatch(domain):
        errors.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        errors.append(f"{_USER} cannot be empty")
    elif len(user) > 104:
        errors.append(f"{_USER} length must not be longer than 104 characters")
    if user and not user.strip(". "):
        errors.append(f"{_USER} cannot contain only periods or spaces")
    if any(letter in '"/\\:;|=,+*?<>@[]' for letter in user):
        errors.append(f'{_USER} cannot contain the following characters: "/\\:;|=,+*?<>@[]')
    return errors


def host_process_errors(path: str, spec: JSON, containers: list[tuple[str, JSON]]) -> Errors:
    """validateWindowsHostProcessPod: all containers of a pod or none, with host network."""
    of_pod = ((spec.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    errors: Errors = []
    count = 0
    for place, container in containers:
        own = ((container.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
        if of_pod is not None and own is not None and own != of_pod:
            shown = str(of_pod).lower()
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            errors.append(invalid(f"{place}.securityContext.windowsOptions.hostProcess", own, detail))
        count += bool(own if own is not None else of_pod)
    if count and count != len(containers):
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        errors.append(invalid(path, "", detail))
    if count and not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(invalid(f"{path}.hostNetwork", False, detail))
    return errors


def annotation_mismatch_errors(path: str, annotations: JSON, spec: JSON, containers: list[tuple[str, JSON]]) -> Errors:
    """Profiles that have an annotation and a field must be the same."""
    if not annotations:
        return []
    errors: Errors = []
    context = spec.get("securityContext") or {}
    pod_note = annotations.get("seccomp.security.alpha.kubernetes.io/pod")
    errors += _mismatch(f"{path}.securityContext.seccompProfile", "seccomp", pod_note, context.get("seccompProfile"))
    for place, container in containers:
        own = (container.get("securityContext") or {}).get("seccompProfile")
        note = annotations.get(f"container.seccomp.security.alpha.kubernetes.io/{container.get('name', '')}")
        errors += _mismatch(f"{place}.securityContext.seccompProfile", "seccomp", note, own)
    if (spec.get("os") or {}).get("name") == "windows":
        return errors
    for place, container in containers:
        own = (container.get("securityContext") or {}).get("appArmorProfile") or context.get("appArmorProfile")
        note = annotations.get(f"container.apparmor.security.beta.kubernetes.io/{container.get('name', '')}")
        errors += _mismatch(f"{place}.securityContext.appArmorProfile", "apparmor", note, own)
    return errors


def _mismatch(path: str, what: str, note: str | None, profile: JSON) -> Errors:
    if note is None or profile is None:
        return []
    kind = profile.get("type")
    allowed = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}
    if kind == "Localhost":
        fits = note.startswith("localhost/")
        if fits and note.removeprefix("localhost/") != profile.get("localhostProfile"):
            return [forbidden(f"{path}.localhostProfile", f"{what} profile in annotation and field must match")]
    else:
        fits = kind not in allowed or note in allowed[kind]
    return [] if fits else [forbidden(f"{path}.type", f"{what} type in annotation and field must match")]
