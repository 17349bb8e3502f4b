"""The warnings about pods and pod templates: deprecated, ambiguous or useless fields. `kinds` calls it.

Upstream: k8s.io/kubernetes/pkg/api/pod/warnings.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubewright.api.names import label_value_errors
from kubewright.api.quantity import Quantity
from kubewright.apiserver.builtin.app_armor import annotated_profile, annotation_warning
from kubewright.apiserver.builtin.trees import Tree, items, peek, semantic_equal
from kubewright.apiserver.builtin.warnings.addresses import address_warnings
from kubewright.errors import DecodeError

__all__ = ("claim_warnings", "node_label_warning", "node_term_warnings", "pod_warnings")

_NODE_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageOS": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "ephemeral": "",  # in the order of the sources: its claim template has warnings
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NO_POD: Final = "a null labelSelector results in matching no pod"


def pod_warnings(path: str, pod: Tree) -> list[str]:
    """The warnings about a pod, with an empty path, or about a pod template."""
    prefix = f"{path}." if path else ""
    spec = pod.get("spec") or {}
    annotations = peek(pod, "metadata", "annotations") or {}
    found = [
        *_scheduling(f"{prefix}spec", spec),
        *(
            f"{prefix}metadata.annotations[{key}]: {why}"
            for key, why in _ANNOTATIONS.items()
            if annotations and key in annotations
        ),
        *_volumes(f"{prefix}spec.volumes", spec),
        *_overlaps(spec),
        *_repetitions(f"{prefix}spec", spec),
        *_whole_bytes(f"{prefix}spec.overhead", spec.get("overhead")),
        *_profiles(prefix, pod, annotations),
    ]
    containers = list(_containers(f"{prefix}spec", spec))
    for where, container in containers:
        found += _container(prefix, where, container, annotations, peek(spec, "securityContext", "appArmorProfile"))
    found += [*_ports(containers), *_port_names(containers)]
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        rule = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{prefix}spec.terminationGracePeriodSeconds: {rule}")
    found += _affinity(f"{prefix}spec.affinity", spec.get("affinity"))
    for index, server in enumerate(peek(spec, "dnsConfig", "nameservers") or []):
        found += address_warnings(f"{prefix}spec.dnsConfig.nameservers[{index}]", server)
    for index, alias in enumerate(items(spec, "hostAliases")):
        found += address_warnings(f"{prefix}spec.hostAliases[{index}].ip", alias.get("ip", ""))
    return found


def claim_warnings(path: str, spec: Tree) -> list[str]:
    """The warnings about the spec of a PersistentVolumeClaim."""
    found: list[str] = []
    for which in ("requests", "limits"):
        amount = peek(spec, "resources", which, "storage")
        if amount is not None and _is_fraction(amount):
            found.append(_fraction(f"{path}.resources.{which}[storage]", amount))
    return found


def node_label_warning(key: str) -> str:
    """The warning about a deprecated label of nodes; empty for any other."""
    return _NODE_LABELS.get(key, "")


def node_term_warnings(path: str, term: Tree, *, check_values: bool = False) -> Iterator[str]:
    """The warnings about a node selector term."""
    for index, rule in enumerate(items(term, "matchExpressions")):
        why = node_label_warning(rule.get("key", ""))
        if why:
            yield f"{path}.matchExpressions[{index}].key: {rule['key']} is {why}"
        for place, value in enumerate(rule.get("values") or []) if check_values else ():
            for error in label_value_errors(value):
                yield f"{path}.matchExpressions[{index}].values[{place}]: {value} is invalid, {error}"


def _scheduling(path: str, spec: Tree) -> Iterator[str]:
    for key in spec.get("nodeSelector") or ():
        if node_label_warning(key):
            yield f"{path}.nodeSelector[{key}]: {node_label_warning(key)}"
    affinity = peek(spec, "affinity", "nodeAffinity") or {}
    where = f"{path}.affinity.nodeAffinity"
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    for index, term in enumerate(items(required, "nodeSelectorTerms")):
        name = f"requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]"
        yield from node_term_warnings(f"{where}.{name}", term)
    for index, weighted in enumerate(items(affinity, "preferredDuringSchedulingIgnoredDuringExecution")):
        name = f"preferredDuringSchedulingIgnoredDuringExecution[{index}].preference"
        yield from node_term_warnings(f"{where}.{name}", weighted.get("preference") or {}, check_values=True)
    for index, constraint in enumerate(items(spec, "topologySpreadConstraints")):
        here, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey", "")
        if node_label_warning(key):
            yield f"{here}.topologyKey: {key} is {node_label_warning(key)}"
        if constraint.get("labelSelector") is None:
            yield f"{here}.labelSelector: {_NO_POD}"


def _volumes(path: str, spec: Tree) -> Iterator[str]:
    for index, volume in enumerate(items(spec, "volumes")):
        for source, why in _VOLUMES.items():
            if volume.get(source) is None:
                continue
            if why:
                yield f"{path}[{index}].{source}: {why}"
            else:
                template = volume[source].get("volumeClaimTemplate") or {}
                where = f"{path}[{index}].ephemeral.volumeClaimTemplate.spec"
                yield from claim_warnings(where, template.get("spec") or {})


def _overlaps(spec: Tree) -> Iterator[str]:
    for volume in items(spec, "volumes"):
        name = volume.get("name", "")
        for source, word, title in (
            ("configMap", "ConfigMap", "name"),
            ("secret", "Secret", "secretName"),
            ("downwardAPI", "DownwardAPI", ""),
        ):
            held = volume.get(source)
            if held:
                paths = [(_trimmed(item), "") for item in items(held, "items")]
                kind = f'{word} "{held.get(title, "")}"' if title else word
                for one, two in _collisions(paths):
                    yield f'volume "{name}" ({kind}): overlapping paths: {one} with {two}'
        seen: list[tuple[str, str]] = []
        for part in items(volume.get("projected"), "sources"):
            if not part:
                yield f'volume "{name}" (Projected) has no sources provided'
            for path, origin in _projected_paths(part):
                for one, two in _collisions([(path, origin)], seen):
                    yield f'volume "{name}" (Projected): overlapping paths: {one} with {two}'


def _projected_paths(source: Tree) -> list[tuple[str, str]]:
    for name, word in (("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")):
        held = source.get(name)
        if held:
            title = word if name == "downwardAPI" else f'{word} "{held.get("name", "")}"'
            return [(_trimmed(item), title) for item in items(held, "items")]
    token = source.get("serviceAccountToken")
    return [(_trimmed(token), "ServiceAccountToken")] if token else []


def _trimmed(item: Tree) -> str:
    return str(item.get("path", "")).rstrip("/")


def _collisions(paths: list[tuple[str, str]], seen: list[tuple[str, str]] | None = None) -> Iterator[tuple[str, str]]:
    """The paths that equal, contain or are inside of an earlier one; adds the paths to the earlier ones."""
    seen = [] if seen is None else seen
    for path, source in paths:
        for other, origin in seen if path else ():
            nested = f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/")
            if other and nested:
                yield _place(path, source), _place(other, origin)
        seen.append((path, source))


def _place(path: str, source: str) -> str:
    return f'"{path}" ({source})' if source else f'"{path}"'


def _repetitions(path: str, spec: Tree) -> Iterator[str]:
    for name, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for index, item in enumerate(items(spec, name)):
            value = item.get(key, "")
            if value in seen:
                yield f'{path}.{name}[{index}].{key}: duplicate {key} "{value}"'
            seen.add(value)
    for index, secret in enumerate(items(spec, "imagePullSecrets")):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def _whole_bytes(path: str, amounts: Tree | None) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        amount = (amounts or {}).get(name)
        if amount is not None and _is_fraction(amount):
            yield _fraction(f"{path}[{name}]", amount)


def _is_fraction(amount: str) -> bool:
    try:
        return Quantity.parse(str(amount)).milli_value % 1000 != 0
    except DecodeError:
        return False


def _fraction(path: str, amount: str) -> str:
    return f'{path}: fractional byte value "{amount}" is invalid, must be an integer'


def _profiles(prefix: str, pod: Tree, annotations: Tree) -> Iterator[str]:
    key = "seccomp.security.alpha.kubernetes.io/pod"
    if key in annotations and peek(pod, "spec", "securityContext", "seccompProfile") is None:
        yield f"{prefix}metadata.annotations[{key}]: {_SECCOMP}"


def _containers(path: str, spec: Tree) -> Iterator[tuple[str, Tree]]:
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec, name)):
            yield f"{path}.{name}[{index}]", container


def _container(prefix: str, path: str, container: Tree, annotations: Tree, whole: Tree | None) -> Iterator[str]:
    name = container.get("name", "")
    context = container.get("securityContext") or {}
    key = f"container.seccomp.security.alpha.kubernetes.io/{name}"
    if key in annotations and context.get("seccompProfile") is None:
        yield f"{prefix}metadata.annotations[{key}]: {_SECCOMP}"
    if prefix and context.get("appArmorProfile") is None:  # of a pod, `app_armor` warns when it sets the field
        has_annotation, profile = annotated_profile(annotations, name)
        if has_annotation and (whole is None or not semantic_equal(profile, whole)):
            yield annotation_warning(prefix, name)
    resources = container.get("resources") or {}
    for resource in ("memory", "ephemeral-storage"):
        for which in ("limits", "requests"):
            amount = (resources.get(which) or {}).get(resource)
            if amount is not None and _is_fraction(amount):
                yield _fraction(f"{path}.resources.{which}[{resource}]", amount)
    seen: set[str] = set()
    for index, variable in enumerate(items(container, "env")):
        named, value = variable.get("name", ""), variable.get("value") or ""
        reference = f"$({named})"
        if named in seen and (variable.get("valueFrom") is not None or value == reference or reference not in value):
            why = f'hides previous definition of "{named}", which may be dropped when using apply'
            yield f"{path}.env[{index}]: {why}"
        seen.add(named)


def _ports(containers: list[tuple[str, Tree]]) -> Iterator[str]:
    seen: dict[tuple[int, str], list[tuple[str, str, int]]] = {}
    for path, container in containers:
        for index, port in enumerate(items(container, "ports")):
            here = f"{path}.ports[{index}]"
            address, number = port.get("hostIP") or "", port.get("hostPort") or 0
            others = seen.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for there, other_address, other_number in others:
                if (address, number) == (other_address, other_number):
                    yield f"{here}: duplicate port definition with {there}"
                elif not number or not other_number:
                    yield f"{here}: overlapping port definition with {there}"
                elif number == other_number and bool(address) != bool(other_address):
                    yield f"{here}: dangerously ambiguous port definition with {there}"
            others.append((here, address, number))


def _port_names(containers: list[tuple[str, Tree]]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for path, container in containers:
        for index, port in enumerate(items(container, "ports")):
            name, here = port.get("name"), f"{path}.ports[{index}]"
            if not name:
                continue
            there = seen.setdefault(name, here)
            if there != here:
                effect = f"services and probes that select ports by name will use {there}"
                yield f'{here}: duplicate port name "{name}" with {there}, {effect}'


def _affinity(path: str, affinity: Tree | None) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = (affinity or {}).get(kind)
        name = "requiredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(items(terms, name)):
            if term.get("labelSelector") is None:
                yield f"{path}.{kind}.{name}[{index}].labelSelector: {_NO_POD}"
        name = "preferredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(items(terms, name)):
            if peek(term, "podAffinityTerm", "labelSelector") is None:
                yield f"{path}.{kind}.{name}[{index}].podAffinityTerm.labelSelector: {_NO_POD}"
