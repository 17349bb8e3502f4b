"""AppArmor profiles as annotations say them, which is how it was done before there was a field.

A new pod gets the field its annotation means, and whoever made it is told; `builtin_rules` asks for that, and
`pod_warnings` for what a template's annotation means.
"""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.trees import Tree, items, peek, same, section

__all__ = ("annotated_profile", "annotation_warning", "fill_profiles")

_KEY: Final = "container.apparmor.security.beta.kubernetes.io/"
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_LOCAL: Final = "localhost/"
_LONGEST: Final = 4095


def annotated_profile(annotations: Tree, container: str) -> tuple[bool, Tree | None]:
    """Whether there is an annotation for a container, and what it means if it means anything."""
    said = annotations.get(f"{_KEY}{container}")
    if said is None:
        return False, None
    if said in ("unconfined", "runtime/default"):
        return True, {"type": "Unconfined" if said == "unconfined" else "RuntimeDefault"}
    profile = said.removeprefix(_LOCAL)
    if said.startswith(_LOCAL) and profile:
        return True, {"type": "Localhost", "localhostProfile": profile}
    return True, None


def annotation_warning(prefix: str, container: str) -> str:
    """What whoever writes such an annotation is told."""
    rule = 'deprecated since v1.30; use the "appArmorProfile" field instead'
    return f"{prefix}metadata.annotations[{_KEY}{container}]: {rule}"


def fill_profiles(pod: Tree) -> list[str]:
    """Set the profiles of a new pod's containers that are only annotated; returns what its maker is told."""
    annotations = peek(pod, "metadata", "annotations")
    if not annotations or not any(key.startswith(_KEY) for key in annotations):
        return []
    spec = section(pod, "spec")
    if peek(spec, "os", "name") == "windows":
        return []
    told = []
    whole = peek(spec, "securityContext", "appArmorProfile")
    for container in (container for name in _LISTS for container in items(spec, name)):
        name = str(container.get("name") or "")
        said, profile = annotated_profile(annotations, name)
        if not said or peek(container, "securityContext", "appArmorProfile") is not None:
            continue
        if profile is None or not _is_valid(profile):
            told.append(annotation_warning("", name))
        elif not same(profile, whole):
            section(container, "securityContext")["appArmorProfile"] = profile
            told.append(annotation_warning("", name))
    return told


def _is_valid(profile: Tree) -> bool:
    local = str(profile.get("localhostProfile") or "")
    return local.strip() == local and len(local.encode()) <= _LONGEST
