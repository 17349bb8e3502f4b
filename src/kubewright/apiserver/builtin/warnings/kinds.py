"""The warnings of each built-in kind, for Warning headers: WarningsOnCreate and WarningsOnUpdate of the strategies.

`warnings_for` is about one write; `deprecation` about every request to a deprecated version.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.names import dns1123_label_errors
from kubewright.api.quantity import Quantity
from kubewright.apiserver.builtin.trees import Tree, items, peek, semantic_equal, text
from kubewright.apiserver.builtin.warnings.addresses import address_warnings, network_warnings
from kubewright.apiserver.builtin.warnings.pods import (
    claim_warnings,
    node_label_warning,
    node_term_warnings,
    pod_warnings,
)

__all__ = ("deprecation", "warnings_for")

_DEPRECATED: Final = {
    "Endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    "ComponentStatus": "v1 ComponentStatus is deprecated in v1.19+",
}
_SURPRISING: Final = "which can result in surprising behavior; a DNS label is recommended"
_TEMPLATES: Final = {
    "CronJob": "spec.jobTemplate.spec.template",
    "PodTemplate": "template",
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"), "spec.template"
    ),
}
_NAMED_PODS: Final = ("CronJob", "Deployment", "Job", "ReplicaSet", "ReplicationController")
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_USE_CLASS: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'
_OLD_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"
_VOLUME_SOURCES: Final = {
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "storageOS": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}


def deprecation(gvk: GroupVersionKind) -> str:
    """The warning of a deprecated version; empty for most."""
    return _DEPRECATED.get(gvk.kind, "") if gvk.api_version == "v1" else ""


def warnings_for(gvk: GroupVersionKind, obj: Tree, old: Tree | None = None) -> list[str]:
    """The warnings about a write; `old` is the object before an update."""
    function = _KINDS.get((gvk.group, gvk.kind))
    if gvk.kind in _TEMPLATES and (gvk.group, gvk.kind) in _HOLDERS:
        return _template(gvk.kind, obj, old)
    return list(function(obj, old)) if function is not None else []


def _template(kind: str, obj: Tree, old: Tree | None) -> list[str]:
    found: list[str] = []
    name = text(obj, "metadata", "name")
    if old is None and kind in _NAMED_PODS:
        found += _surprising(name, "this is used in Pod names and hostnames")
    # As in the strategies: no warnings about a template that the update did not change.
    if old is None or peek(obj, "metadata", "generation") != peek(old, "metadata", "generation"):
        path = _TEMPLATES[kind]
        # The strategy of ReplicationControllers has the two mixed up: it warns about the template that was.
        warned = old if old is not None and kind == "ReplicationController" else obj
        found += pod_warnings(path, peek(warned, *path.split(".")) or {})
    if kind == "StatefulSet":
        for index, claim in enumerate(items(obj.get("spec"), "volumeClaimTemplates")):
            where = f"spec.volumeClaimTemplates[{index}]" + ("" if old is None else ".Spec")
            found += claim_warnings(where, claim.get("spec") or {})
        if (peek(obj, "spec", "revisionHistoryLimit") or 0) < 0:
            rule = "a negative value retains all historical revisions; a value >= 0 is recommended"
            found.append(f"spec.revisionHistoryLimit: {rule}")
    return found


def _surprising(name: str, use: str) -> list[str]:
    errors = dns1123_label_errors(name) if name else []
    return [f"metadata.name: {use}, {_SURPRISING}: [{' '.join(errors)}]"] if errors else []


def _pod(pod: Tree, old: Tree | None) -> Iterator[str]:
    if old is None:
        yield from _surprising(text(pod, "metadata", "name"), "this is used in the Pod's hostname")
        yield from pod_warnings("", pod)


def _service(service: Tree, old: Tree | None) -> Iterator[str]:
    spec = service.get("spec") or {}
    annotation = "service.kubernetes.io/topology-aware-hints"
    if annotation in (peek(service, "metadata", "annotations") or {}):
        yield f"annotation {annotation} is deprecated, please use service.kubernetes.io/topology-mode instead"
    kind, headless = spec.get("type"), spec.get("clusterIP") == "None"
    if not headless:
        for index, address in enumerate(spec.get("clusterIPs") or []):
            yield from address_warnings(f"spec.clusterIPs[{index}]", address)
    if headless and kind == "ClusterIP":
        for name in ("loadBalancerIP", "externalIPs"):
            if spec.get(name):
                yield f"spec.{name} is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    for index, address in enumerate(spec.get("externalIPs") or []):
        yield from address_warnings(f"spec.externalIPs[{index}]", address)
    if spec.get("loadBalancerIP"):
        yield from address_warnings("spec.loadBalancerIP", spec["loadBalancerIP"])
    for index, network in enumerate(spec.get("loadBalancerSourceRanges") or []):
        yield from network_warnings(f"spec.loadBalancerSourceRanges[{index}]", network)
    if kind == "ExternalName" and spec.get("externalIPs"):
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if kind != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _secret(secret: Tree, old: Tree | None) -> Iterator[str]:
    if secret.get("type") != "kubernetes.io/tls":
        return
    data = secret.get("data") or {}
    for key, word in (("tls.crt", "certificate"), ("tls.key", "key")):
        try:
            found = b"-----BEGIN " in b64decode(data.get(key) or "")
        except (Base64Error, ValueError):
            return
        if not found:
            yield f"tls: failed to find any PEM data in {word} input"
            return


def _account(account: Tree, old: Tree | None) -> Iterator[str]:
    key = "kubernetes.io/enforce-mountable-secrets"
    was = peek(old, "metadata", "annotations") or {}
    if key in (peek(account, "metadata", "annotations") or {}) and key not in was:
        why = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        yield f"metadata.annotations[{key}]: {why}"


def _quota(quota: Tree, old: Tree | None) -> Iterator[str]:
    hard = peek(quota, "spec", "hard") or {}
    for name in ("cpu", "memory", "ephemeral-storage") if old is None else ():
        request = f"requests.{name}"
        if request not in hard and name in ("cpu", "memory"):
            request = name
        limit = f"limits.{name}"
        if request in hard and limit in hard and Quantity(hard[request]) > Quantity(hard[limit]):
            yield f"ResourceQuota {request} ({hard[request]}) should be less than {limit} ({hard[limit]})"


def _volume(volume: Tree, old: Tree | None) -> Iterator[str]:
    spec, annotations = volume.get("spec") or {}, peek(volume, "metadata", "annotations") or {}
    if _OLD_CLASS in annotations:
        yield f"metadata.annotations[{_OLD_CLASS}]: {_USE_CLASS}"
    if _OLD_OPTIONS in annotations:
        yield f'metadata.annotations[{_OLD_OPTIONS}]: deprecated since v1.31; use "mountOptions" attribute instead'
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        advice = "Instead, the recommended approach is to use dynamic provisioning."
        yield f"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. {advice}"
    for index, term in enumerate(items(peek(spec, "nodeAffinity", "required"), "nodeSelectorTerms")):
        yield from node_term_warnings(f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]", term)
    for source, why in _VOLUME_SOURCES.items():
        if spec.get(source) is not None:
            yield f"spec.{source}: {why}"


def _claim(claim: Tree, old: Tree | None) -> Iterator[str]:
    if _OLD_CLASS in (peek(claim, "metadata", "annotations") or {}):
        yield f"metadata.annotations[{_OLD_CLASS}]: {_USE_CLASS}"
    yield from claim_warnings("spec", claim.get("spec") or {})


def _ingress(ingress: Tree, old: Tree | None) -> Iterator[str]:
    key = "kubernetes.io/ingress.class"
    annotations = peek(ingress, "metadata", "annotations") or {}
    if old is None and key in annotations and peek(ingress, "spec", "ingressClassName") is None:
        yield f"annotation \"{key}\" is deprecated, please use 'spec.ingressClassName' instead"


def _network_policy(policy: Tree, old: Tree | None) -> Iterator[str]:
    for name, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(items(policy.get("spec"), name)):
            for place, peer in enumerate(items(rule, side)):
                block = peer.get("ipBlock") or {}
                path = f"spec.{name}[{index}].{side}[{place}].ipBlock"
                yield from network_warnings(f"{path}.cidr", block.get("cidr") or "")
                for number, network in enumerate(block.get("except") or []):
                    yield from network_warnings(f"{path}.except[{number}]", network)


def _node(node: Tree, old: Tree | None) -> Iterator[str]:
    spec = node.get("spec") or {}
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for index, network in enumerate(spec.get("podCIDRs") or []):
        yield from network_warnings(f"spec.podCIDRs[{index}]", network)


def _endpoints(endpoints: Tree, old: Tree | None) -> Iterator[str]:
    for index, subset in enumerate(items(endpoints, "subsets")):
        for name in ("addresses", "notReadyAddresses"):
            for place, address in enumerate(items(subset, name)):
                yield from address_warnings(f"subsets[{index}].{name}[{place}].ip", address.get("ip", ""))


def _endpoint_slice(endpoint_slice: Tree, old: Tree | None) -> Iterator[str]:
    kind = endpoint_slice.get("addressType")
    if old is None and kind == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    for index, endpoint in enumerate(items(endpoint_slice, "endpoints") if kind in ("IPv4", "IPv6") else []):
        for place, address in enumerate(endpoint.get("addresses") or []):
            yield from address_warnings(f"endpoints[{index}].addresses[{place}]", address)


def _runtime_class(runtime: Tree, old: Tree | None) -> Iterator[str]:
    for key in peek(runtime, "scheduling", "nodeSelector") or ():
        if node_label_warning(key):
            yield f"scheduling.nodeSelector: {node_label_warning(key)}"


def _storage_class(storage: Tree, old: Tree | None) -> Iterator[str]:
    for index, topology in enumerate(items(storage, "allowedTopologies")):
        for place, rule in enumerate(items(topology, "matchLabelExpressions")):
            why = node_label_warning(rule.get("key", ""))
            if why:
                yield f"allowedTopologies[{index}].matchLabelExpressions[{place}].key: {why}"


def _csi_driver(driver: Tree, old: Tree | None) -> Iterator[str]:
    spec = driver.get("spec") or {}
    changed = old is None or not semantic_equal(peek(old, "spec", "tokenRequests"), spec.get("tokenRequests"))
    if changed and spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
        advice = "set to true to prevent possible logging of tokens in volume attributes"
        yield f"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, {advice}"


_HOLDERS: Final = frozenset(
    {
        ("", "PodTemplate"),
        ("", "ReplicationController"),
        ("batch", "CronJob"),
        ("batch", "Job"),
        *(("apps", kind) for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")),
    }
)
_KINDS: Final[Mapping[tuple[str, str], Callable[[Tree, Tree | None], Iterator[str]]]] = {
    ("", "Endpoints"): _endpoints,
    ("", "Node"): _node,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
    ("", "ResourceQuota"): _quota,
    ("", "Secret"): _secret,
    ("", "Service"): _service,
    ("", "ServiceAccount"): _account,
    ("discovery.k8s.io", "EndpointSlice"): _endpoint_slice,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    ("node.k8s.io", "RuntimeClass"): _runtime_class,
    ("storage.k8s.io", "CSIDriver"): _csi_driver,
    ("storage.k8s.io", "StorageClass"): _storage_class,
}
