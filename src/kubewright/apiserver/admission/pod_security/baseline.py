"""The checks of the level `baseline`, which prevents known privilege escalations.

Each check is a function from a pod to its violation, if any. Checks that changed between versions of Kubernetes take
what a version allows as an argument; `standards` says which applies from which version on.
"""

from __future__ import annotations

from typing import Any, Final

from kubewright.api.go_text import quoted
from kubewright.apiserver.admission.pod_security.subjects import (
    Check,
    Subject,
    Violation,
    containers_named,
    listed,
    plural,
    set_by,
)
from kubewright.apiserver.builtin.trees import Tree, items

__all__ = (
    "app_armor_profile",
    "capabilities",
    "host_namespaces",
    "host_path_volumes",
    "host_ports",
    "host_probes",
    "host_process",
    "is_confined",
    "privileged",
    "proc_mount",
    "proc_mount_unless_user_namespace",
    "se_linux_options",
    "seccomp_annotations",
    "seccomp_profile",
    "sysctls",
)

_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_CONFINED: Final = ("RuntimeDefault", "Localhost")
_CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)


def is_confined(profile: Tree) -> bool:
    """Whether a seccomp or an AppArmor profile confines the container."""
    return profile.get("type") in _CONFINED


def app_armor_profile(pod: Subject) -> Violation | None:
    """AppArmor profiles: the runtime's default or one of the node's."""
    who, profiles = pod.setters("appArmorProfile", lambda profile: not is_confined(profile))
    values = sorted({str(profile.get("type") or "") for profile in profiles})
    notes = sorted(
        f"{key}={quoted(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(_APP_ARMOR) and value and value != "runtime/default" and not value.startswith("localhost/")
    )
    if notes:
        values += notes
        who.append(plural(len(notes), "annotation"))
    if not who:
        return None
    reason = plural(len(values), "forbidden AppArmor profile")
    return Violation(reason, f"{set_by(who)} must not set AppArmor profile type to {listed(values)}")


def capabilities(pod: Subject) -> Violation | None:
    """Added capabilities: only those containers have by default."""
    names, added = [], set()
    for container in pod.containers:
        bad = set((container.security.get("capabilities") or {}).get("add") or ()) - _CAPABILITIES
        if bad:
            names.append(container.name)
            added |= bad
    if not names:
        return None
    detail = f"{containers_named(names)} must not include {listed(sorted(added))} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


def host_namespaces(pod: Subject) -> Violation | None:
    """No host network, PID or IPC namespace."""
    shared = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(name)]
    return Violation("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(pod: Subject) -> Violation | None:
    """No hostPath volumes."""
    names = [str(volume.get("name")) for volume in items(pod.spec, "volumes") if volume.get("hostPath") is not None]
    return Violation("hostPath volumes", f"{plural(len(names), 'volume')} {listed(names)}") if names else None


def host_ports(pod: Subject) -> Violation | None:
    """No host ports."""
    names, ports = [], set()
    for container in pod.containers:
        taken = {str(port["hostPort"]) for port in items(container.tree, "ports") if port.get("hostPort")}
        if taken:
            names.append(container.name)
            ports |= taken
    if not names:
        return None
    use, what = plural(len(names), "uses", "use"), plural(len(ports), "hostPort")
    return Violation("hostPort", f"{containers_named(names)} {use} {what} {', '.join(sorted(ports))}")


def host_probes(pod: Subject) -> Violation | None:
    """Probes and lifecycle hooks name no host."""
    names, hosts = set(), set()
    for container in pod.containers:
        tree = container.tree
        lifecycle = tree.get("lifecycle") or {}
        handlers = [tree.get(name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [lifecycle.get(name) for name in ("postStart", "preStop")]
        actions = [(handler or {}).get(way) or {} for handler in handlers for way in ("httpGet", "tcpSocket")]
        named = {str(action["host"]) for action in actions if action.get("host")}
        if named:
            names.add(container.name)
            hosts |= named
    if not names:
        return None
    use, what = plural(len(names), "uses", "use"), plural(len(hosts), "probe or lifecycle host")
    detail = f"{containers_named(sorted(names))} {use} {what} {listed(sorted(hosts))}"
    return Violation("probe or lifecycle host", detail)


def privileged(pod: Subject) -> Violation | None:
    """No privileged containers."""
    names = [container.name for container in pod.containers if container.security.get("privileged")]
    if not names:
        return None
    return Violation("privileged", f"{containers_named(names)} must not set securityContext.privileged=true")


def proc_mount(pod: Subject) -> Violation | None:
    """The default /proc mount."""
    bad = [
        (container.name, str(mount))
        for container in pod.containers
        if (mount := container.security.get("procMount")) is not None and mount != "Default"
    ]
    if not bad:
        return None
    names, mounts = [name for name, _ in bad], sorted({mount for _, mount in bad})
    return Violation(
        "procMount", f"{containers_named(names)} must not set securityContext.procMount to {listed(mounts)}"
    )


def proc_mount_unless_user_namespace(pod: Subject) -> Violation | None:
    """The default /proc mount, unless the pod has a user namespace."""
    return None if pod.has_user_namespace else proc_mount(pod)


def se_linux_options(types: frozenset[str]) -> Check:
    """SELinux options: only these types, no user and no role."""

    def is_bad(options: Tree) -> bool:
        return bool(_type(options) not in types or options.get("user") or options.get("role"))

    def _type(options: Tree) -> str:
        return str(options.get("type") or "")

    def check(pod: Subject) -> Violation | None:
        who, found = pod.setters("seLinuxOptions", is_bad)
        if not who:
            return None
        parts = []
        bad = sorted({_type(options) for options in found} - types)
        if bad:
            parts.append(f"{plural(len(bad), 'type')} {listed(bad)}")
        parts += [f"{name} may not be set" for name in ("user", "role") if any(options.get(name) for options in found)]
        detail = f"{set_by(who)} set forbidden securityContext.seLinuxOptions: {'; '.join(parts)}"
        return Violation("seLinuxOptions", detail)

    return check


def seccomp_annotations(pod: Subject) -> Violation | None:
    """Seccomp profiles in annotations, as before v1.19: none that is unconfined."""
    keys = {_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER}{container.name}" for container in pod.containers)}
    bad = sorted(
        f"{key}={quoted(value)}"
        for key, value in pod.annotations.items()
        if key in keys and value not in ("runtime/default", "docker/default") and not value.startswith("localhost/")
    )
    if not bad:
        return None
    return Violation("seccompProfile", f"forbidden {plural(len(bad), 'annotation')} {', '.join(bad)}")


def seccomp_profile(pod: Subject) -> Violation | None:
    """Seccomp profiles: none that is unconfined."""
    who, profiles = pod.setters("seccompProfile", lambda profile: not is_confined(profile))
    if not who:
        return None
    types = sorted({str(profile.get("type") or "") for profile in profiles})
    detail = f"{set_by(who)} must not set securityContext.seccompProfile.type to {listed(types)}"
    return Violation("seccompProfile", detail)


def sysctls(allowed: frozenset[str]) -> Check:
    """Sysctls: only these."""

    def check(pod: Subject) -> Violation | None:
        names = [str(item.get("name")) for item in items(pod.security, "sysctls") if item.get("name") not in allowed]
        return Violation("forbidden sysctls", ", ".join(names)) if names else None

    return check


def host_process(pod: Subject) -> Violation | None:
    """No Windows HostProcess containers."""

    def is_bad(options: Any) -> bool:
        return bool(options.get("hostProcess"))

    who, _ = pod.setters("windowsOptions", is_bad)
    if not who:
        return None
    return Violation("hostProcess", f"{set_by(who)} must not set securityContext.windowsOptions.hostProcess=true")
