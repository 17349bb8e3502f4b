"""The checks of the level `restricted`, which follows hardening best practices.

They apply in addition to those of `baseline`, and some replace one; `standards` says which, from which version on.
"""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.admission.pod_security.baseline import is_confined, seccomp_profile
from kubewright.apiserver.admission.pod_security.subjects import (
    Check,
    Subject,
    Violation,
    containers_named,
    listed,
    plural,
    set_by,
)
from kubewright.apiserver.builtin.trees import items

__all__ = (
    "capabilities_dropped",
    "no_escalation",
    "no_root_user",
    "non_root",
    "seccomp_profile_set",
    "unless_user_namespace",
    "unless_windows",
    "volume_types",
)

_VOLUMES: Final = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
_OTHER_VOLUMES: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def unless_windows(check: Check) -> Check:
    """The check, except for Windows pods."""
    return lambda pod: None if pod.is_windows else check(pod)


def unless_user_namespace(check: Check) -> Check:
    """The check, except for pods with a user namespace, whose root is not the node's."""
    return lambda pod: None if pod.has_user_namespace else check(pod)


def no_escalation(pod: Subject) -> Violation | None:
    """allowPrivilegeEscalation is false."""
    names = [item.name for item in pod.containers if item.security.get("allowPrivilegeEscalation") is not False]
    if not names:
        return None
    detail = f"{containers_named(names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def capabilities_dropped(pod: Subject) -> Violation | None:
    """All capabilities are dropped; only NET_BIND_SERVICE may be added."""
    keeping, adding, added = [], [], set()
    for container in pod.containers:
        capabilities = container.security.get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or ()):
            keeping.append(container.name)
        bad = set(capabilities.get("add") or ()) - {"NET_BIND_SERVICE"}
        if bad:
            adding.append(container.name)
            added |= bad
    details = []
    if keeping:
        details.append(f'{containers_named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        which = listed(sorted(added))
        details.append(f"{containers_named(adding)} must not include {which} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def volume_types(pod: Subject) -> Violation | None:
    """Only volumes of these types."""
    names, types = [], set()
    for volume in items(pod.spec, "volumes"):
        if all(volume.get(kind) is None for kind in _VOLUMES):
            names.append(str(volume.get("name")))
            types.add(next((kind for kind in _OTHER_VOLUMES if volume.get(kind) is not None), "unknown"))
    if not names:
        return None
    use, what = plural(len(names), "uses", "use"), plural(len(types), "restricted volume type")
    detail = f"{plural(len(names), 'volume')} {listed(names)} {use} {what} {listed(sorted(types))}"
    return Violation("restricted volume types", detail)


def non_root(pod: Subject) -> Violation | None:
    """runAsNonRoot is true for every container."""
    reason = "runAsNonRoot != true"
    who, _ = pod.setters("runAsNonRoot", lambda value: value is False)
    if who:
        return Violation(reason, f"{set_by(who)} must not set securityContext.runAsNonRoot=false")
    if pod.security.get("runAsNonRoot"):
        return None
    names = [item.name for item in pod.containers if item.security.get("runAsNonRoot") is None]
    if not names:
        return None
    return Violation(reason, f"pod or {containers_named(names)} must set securityContext.runAsNonRoot=true")


def no_root_user(pod: Subject) -> Violation | None:
    """runAsUser is not 0."""
    who, _ = pod.setters("runAsUser", lambda value: value == 0)
    return Violation("runAsUser=0", f"{set_by(who)} must not set runAsUser=0") if who else None


def seccomp_profile_set(pod: Subject) -> Violation | None:
    """Every container has a seccomp profile that confines it."""
    bad = seccomp_profile(pod)
    if bad is not None:
        return bad
    own = pod.security.get("seccompProfile")
    if own is not None and is_confined(own):
        return None
    names = [item.name for item in pod.containers if item.security.get("seccompProfile") is None]
    if not names:
        return None
    must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {containers_named(names)} {must}")
