"""The API objects that pods and volumes refer to by name: Secrets, ConfigMaps, claims and more.

Pure. The node authorizer lets a node read what its pods refer to; NodeRestriction lets no node create a pod that refers
to anything. Upstream: pkg/api/v1/pod/util.go, pkg/api/pod/util.go and pkg/api/v1/persistentvolume/util.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubewright.apiserver.builtin.trees import Tree, items, peek, text

__all__ = (
    "api_object_reference",
    "claim_names",
    "config_map_names",
    "resource_claim_names",
    "secret_names",
    "volume_secrets",
)

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_WITH_SECRET_REF: Final = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")
_OF_CLAIM: Final = ("cephfs", "flexVolume", "rbd", "scaleIO", "iscsi")
"""Volumes whose Secret is in the namespace of the claim unless they name another."""
_WITHOUT_REFERENCES: Final = (
    *("awsElasticBlockStore", "azureDisk", "cephfs", "cinder", "downwardAPI", "emptyDir", "fc", "flexVolume"),
    *("flocker", "gcePersistentDisk", "gitRepo", "hostPath", "image", "iscsi", "nfs", "photonPersistentDisk"),
    *("portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume"),
)
_REFERENCES: Final = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_PROJECTED_REFERENCES: Final = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def secret_names(pod: Tree) -> Iterator[str]:
    """The Secrets of a pod's images, containers and volumes."""
    spec = pod.get("spec")
    found = [text(reference, "name") for reference in items(spec, "imagePullSecrets")]
    found += _container_names(spec, "secretRef", "secretKeyRef")
    for volume in items(spec, "volumes"):
        found.append(text(volume, "azureFile", "secretName"))
        found.append(text(volume, "secret", "secretName"))
        found.append(text(volume, "csi", "nodePublishSecretRef", "name"))
        found += [text(volume, source, "secretRef", "name") for source in _WITH_SECRET_REF]
        found += [text(source, "secret", "name") for source in items(volume.get("projected"), "sources")]
    return filter(None, found)


def config_map_names(pod: Tree) -> Iterator[str]:
    """The ConfigMaps of a pod's containers and volumes."""
    spec = pod.get("spec")
    found = _container_names(spec, "configMapRef", "configMapKeyRef")
    for volume in items(spec, "volumes"):
        found.append(text(volume, "configMap", "name"))
        found += [text(source, "configMap", "name") for source in items(volume.get("projected"), "sources")]
    return filter(None, found)


def _container_names(spec: Tree | None, whole: str, key: str) -> list[str]:
    containers = [container for kind in _CONTAINERS for container in items(spec, kind)]
    found = [text(source, whole, "name") for container in containers for source in items(container, "envFrom")]
    return found + [
        text(variable, "valueFrom", key, "name") for container in containers for variable in items(container, "env")
    ]


def claim_names(pod: Tree) -> Iterator[str]:
    """The PersistentVolumeClaims of a pod, those of its ephemeral volumes too."""
    for volume in items(pod.get("spec"), "volumes"):
        if volume.get("persistentVolumeClaim") is not None:
            yield text(volume, "persistentVolumeClaim", "claimName")
        elif volume.get("ephemeral") is not None:
            yield f"{pod['metadata']['name']}-{text(volume, 'name')}"


def resource_claim_names(pod: Tree) -> Iterator[str]:
    """The ResourceClaims of a pod: named ones, and generated ones that its status names."""
    status = pod.get("status")
    generated = {text(one, "name"): text(one, "resourceClaimName") for one in items(status, "resourceClaimStatuses")}
    for claim in items(pod.get("spec"), "resourceClaims"):
        yield text(claim, "resourceClaimName") or generated.get(text(claim, "name"), "")
    yield text(status, "extendedResourceClaimStatus", "resourceClaimName")


def volume_secrets(volume: Tree) -> Iterator[tuple[str, str]]:
    """Namespace and name of the Secrets of a PersistentVolume that a kubelet may see."""
    spec = volume.get("spec") or {}
    namespace = text(spec, "claimRef", "namespace")
    azure = spec.get("azureFile")
    if azure:
        yield text(azure, "secretNamespace") or namespace, text(azure, "secretName")
    for source in _WITH_SECRET_REF:
        reference = peek(spec, source, "secretRef")
        if reference:
            yield text(reference, "namespace") or (namespace if source in _OF_CLAIM else ""), text(reference, "name")
    for step in ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"):
        reference = peek(spec, "csi", step)
        if reference:
            yield text(reference, "namespace"), text(reference, "name")


def api_object_reference(pod: Tree) -> str:
    """What a pod refers to, in the words of `HasAPIObjectReference`; empty if it needs no other API object."""
    spec = pod.get("spec") or {}
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    if next(secret_names(pod), None):
        return "secrets"
    if next(config_map_names(pod), None):
        return "configmaps"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    return next(filter(None, map(_volume_reference, items(spec, "volumes"))), "")


def _volume_reference(volume: Tree) -> str:
    for source in volume:
        if source in _REFERENCES:
            return _REFERENCES[source]
        if source == "projected":
            found = (_PROJECTED_REFERENCES.get(name, "") for one in items(volume[source], "sources") for name in one)
            return next(filter(None, found), "")
        if source not in _WITHOUT_REFERENCES and source != "name":
            return f"volumes of the unknown type {source}"
    return ""
