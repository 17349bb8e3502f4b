"""The beta annotations of AppArmor profiles, which the field appArmorProfile has replaced.

`strategy` sets the field of a new pod by its annotation, with a warning; `warnings.pods` warns of the annotations of a
pod template. Upstream: `applyAppArmorVersionSkew` of k8s.io/kubernetes/pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.trees import Tree, items, peek, section, semantic_equal

__all__ = ("annotated_profile", "annotation_warning", "apply_annotated_profiles")

_KEY: Final = "container.apparmor.security.beta.kubernetes.io/"
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_LOCAL: Final = "localhost/"
_MAX_BYTES: Final = 4095


def annotated_profile(annotations: Tree, container: str) -> tuple[bool, Tree | None]:
    """Whether a container has an annotation, and the profile it means; None for an invalid one."""
    value = annotations.get(f"{_KEY}{container}")
    if value is None:
        return False, None
    if value in ("unconfined", "runtime/default"):
        return True, {"type": "Unconfined" if value == "unconfined" else "RuntimeDefault"}
    profile = value.removeprefix(_LOCAL)
    if value.startswith(_LOCAL) and profile:
        return True, {"type": "Localhost", "localhostProfile": profile}
    return True, None


def annotation_warning(prefix: str, container: str) -> str:
    """The warning about an annotation."""
    rule = 'deprecated since v1.30; use the "appArmorProfile" field instead'
    return f"{prefix}metadata.annotations[{_KEY}{container}]: {rule}"


def apply_annotated_profiles(pod: Tree) -> list[str]:
    """Set the fields of a new pod's containers that have an annotation only; returns the warnings."""
    annotations = peek(pod, "metadata", "annotations")
    if not annotations or not any(key.startswith(_KEY) for key in annotations):
        return []
    spec = section(pod, "spec")
    if peek(spec, "os", "name") == "windows":
        return []
    warnings = []
    whole = peek(spec, "securityContext", "appArmorProfile")
    for container in (container for name in _LISTS for container in items(spec, name)):
        name = str(container.get("name") or "")
        has_annotation, profile = annotated_profile(annotations, name)
        if not has_annotation or peek(container, "securityContext", "appArmorProfile") is not None:
            continue
        if profile is None or not _is_valid(profile):
            warnings.append(annotation_warning("", name))
        elif not semantic_equal(profile, whole):
            section(container, "securityContext")["appArmorProfile"] = profile
            warnings.append(annotation_warning("", name))
    return warnings


def _is_valid(profile: Tree) -> bool:
    local = str(profile.get("localhostProfile") or "")
    return local.strip() == local and len(local.encode()) <= _MAX_BYTES
