"""Which checks apply at which level and version, and the violations of a pod.

Checks came with versions of Kubernetes, and some changed: a namespace that pins a version keeps the checks of that
version. Violations are in kube-apiserver's order: baseline, then restricted, each by the names of the checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, final

from kubewright.apiserver.admission.pod_security import baseline, restricted
from kubewright.apiserver.admission.pod_security.levels import Level, Standard
from kubewright.apiserver.admission.pod_security.subjects import Check, Subject, Violation

__all__ = ("violations",)

_NEWEST: Final = 35
"""The version of the last change; later ones have the same checks."""


@final
@dataclass(frozen=True, slots=True)
class _Check:
    """A check and its implementations, each with the minor version it applies from."""

    name: str
    since: tuple[tuple[int, Check], ...]
    replaces: str = ""

    def at(self, minor: int) -> Check | None:
        """The implementation of a version; None before the first."""
        found = None
        for first, implementation in self.since:
            if minor >= first:
                found = implementation
        return found


_SE_LINUX: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    }
)
_SYSCTLS_27: Final = _SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SYSCTLS_29: Final = _SYSCTLS_27 | {
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
_SYSCTLS_32: Final = _SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}

_BASELINE: Final = (
    _Check("appArmorProfile", ((0, baseline.app_armor_profile),)),
    _Check("capabilities_baseline", ((0, baseline.capabilities),)),
    _Check("hostNamespaces", ((0, baseline.host_namespaces),)),
    _Check("hostPathVolumes", ((0, baseline.host_path_volumes),)),
    _Check("hostPorts", ((0, baseline.host_ports),)),
    _Check("hostProbesAndHostLifecycle", ((34, baseline.host_probes),)),
    _Check("privileged", ((0, baseline.privileged),)),
    _Check("procMount", ((0, baseline.proc_mount), (35, baseline.proc_mount_unless_user_namespace))),
    _Check(
        "seLinuxOptions",
        (
            (0, baseline.se_linux_options(_SE_LINUX)),
            (31, baseline.se_linux_options(_SE_LINUX | {"container_engine_t"})),
        ),
    ),
    _Check("seccompProfile_baseline", ((0, baseline.seccomp_annotations), (19, baseline.seccomp_profile))),
    _Check(
        "sysctls",
        (
            (0, baseline.sysctls(_SYSCTLS)),
            (27, baseline.sysctls(_SYSCTLS_27)),
            (29, baseline.sysctls(_SYSCTLS_29)),
            (32, baseline.sysctls(_SYSCTLS_32)),
        ),
    ),
    _Check("windowsHostProcess", ((0, baseline.host_process),)),
)
_RESTRICTED: Final = (
    _Check(
        "allowPrivilegeEscalation",
        ((8, restricted.no_escalation), (25, restricted.unless_windows(restricted.no_escalation))),
    ),
    _Check(
        "capabilities_restricted",
        ((22, restricted.capabilities_dropped), (25, restricted.unless_windows(restricted.capabilities_dropped))),
        replaces="capabilities_baseline",
    ),
    _Check("procMount_restricted", ((35, baseline.proc_mount),), replaces="procMount"),
    _Check("restrictedVolumes", ((0, restricted.volume_types),), replaces="hostPathVolumes"),
    _Check("runAsNonRoot", ((0, restricted.non_root), (35, restricted.unless_user_namespace(restricted.non_root)))),
    _Check(
        "runAsUser", ((23, restricted.no_root_user), (35, restricted.unless_user_namespace(restricted.no_root_user)))
    ),
    _Check(
        "seccompProfile_restricted",
        ((19, restricted.seccomp_profile_set), (25, restricted.unless_windows(restricted.seccomp_profile_set))),
        replaces="seccompProfile_baseline",
    ),
)


def violations(standard: Standard, pod: Subject) -> tuple[Violation, ...]:
    """The violations of a pod at a level and version."""
    if standard.level == "privileged":
        return ()
    minor = _NEWEST if standard.minor is None else min(standard.minor, _NEWEST)
    return tuple(
        found for implementation in _rules(standard.level, minor) if (found := implementation(pod)) is not None
    )


@cache
def _rules(level: Level, minor: int) -> tuple[Check, ...]:
    return tuple(_applicable(level, minor))


def _applicable(level: Level, minor: int) -> Iterator[Check]:
    more = _RESTRICTED if level == "restricted" else ()
    replaced = {check.replaces for check in more if check.at(minor) is not None}
    for check in (*_BASELINE, *more):
        implementation = check.at(minor)
        if implementation is not None and check.name not in replaced:
            yield implementation
