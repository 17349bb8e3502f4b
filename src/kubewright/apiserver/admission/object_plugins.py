"""What the API server itself adds to an object by looking at others: the plug-ins that are always on.

A pod gets a service account and the token volume, a priority, tolerations, the limits of its namespace; a claim and
an ingress get the default class; claims and volumes a finalizer. Webhooks and policies are not here, nor is quota.
The server calls `admit` after defaults and before webhooks, and `check` after validation; they look up others through
`Objects`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from kubewright.api.kinds import GroupResource, GroupVersionKind
from kubewright.api.quantity import Quantity
from kubewright.apiserver.admission import limit_ranger
from kubewright.apiserver.admission.device_admin_access import admin_access_errors, asks_for_admin_access
from kubewright.apiserver.builtin.trees import Tree, items, peek, same, section, text
from kubewright.apiserver.wire.status_errors import StatusError, forbidden, invalid

__all__ = ("Objects", "admit", "check")

_PODS: Final = GroupResource("", "pods")
_SERVICE_ACCOUNT: Final = GroupVersionKind("", "v1", "ServiceAccount")
_LIMIT_RANGE: Final = GroupVersionKind("", "v1", "LimitRange")
_PRIORITY_CLASS: Final = GroupVersionKind("scheduling.k8s.io", "v1", "PriorityClass")
_RUNTIME_CLASS: Final = GroupVersionKind("node.k8s.io", "v1", "RuntimeClass")
_NAMESPACE: Final = GroupVersionKind("", "v1", "Namespace")
_NODE: Final = GroupVersionKind("", "v1", "Node")
_STORAGE_CLASS: Final = GroupVersionKind("storage.k8s.io", "v1", "StorageClass")
_INGRESS_CLASS: Final = GroupVersionKind("networking.k8s.io", "v1", "IngressClass")

_MIRROR: Final = "kubernetes.io/config.mirror"
_TOKEN_VOLUME: Final = "kube-api-access-"  # noqa: S105  # the name of a volume
_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  # a mount path
# One hour and seven seconds: how the real server tells its own volumes from those of users.
_TOKEN_SECONDS: Final = 3607
_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"
_EVICTING_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_EVICTED_AFTER: Final = 300
_TOPOLOGY: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


class Objects(Protocol):
    """Where other objects are looked up."""

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> Tree | None:
        """The object, or None; not to be changed."""

    def list(self, gvk: GroupVersionKind, namespace: str = "") -> Iterable[Tree]:
        """All objects of a kind, of one namespace if given; not to be changed."""


def admit(
    gvk: GroupVersionKind,
    obj: Tree,
    objects: Objects,
    *,
    old: Tree | None = None,
    subresource: str = "",
    chance: random.Random | None = None,
) -> None:
    """Add to an object that is created, or updated if there is an old one; changes it in place, or refuses it."""
    step = _STEPS.get((gvk.group, gvk.kind))
    if step is not None and not subresource:
        step(obj, old, objects, chance or random)  # type: ignore[arg-type]  # the module has the same functions
    elif subresource == "resize" and gvk.kind == "Pod":
        _admit_resize(obj, objects)
    elif subresource == "binding" and gvk.kind == "Pod":
        target = section(obj, "target")
        if target.get("kind") == "Node":
            _label_topology(obj, target.get("name") or "", objects)


def check(
    gvk: GroupVersionKind, obj: Tree, objects: Objects, *, old: Tree | None = None, subresource: str = ""
) -> None:
    """Refuse an object that is well formed, for what others say."""
    if gvk.kind == "PersistentVolumeClaim" and not gvk.group and old is not None and not subresource:
        _check_growth(obj, old, objects)
    elif path := asks_for_admin_access(gvk, obj, old, subresource):
        errors = admin_access_errors(path, objects.get(_NAMESPACE, "", text(obj, "metadata", "namespace")))
        if errors:
            raise invalid(gvk, text(obj, "metadata", "name"), errors)


def _admit_pod(pod: Tree, old: Tree | None, objects: Objects, chance: random.Random) -> None:
    spec = section(pod, "spec")
    if old is None:
        namespace = text(pod, "metadata", "namespace")
        for limit_range in objects.list(_LIMIT_RANGE, namespace):
            limit_ranger.apply(limit_range, pod)
        if peek(pod, "metadata", "annotations", _MIRROR) is None:
            _give_account(pod, spec, namespace, objects, chance)
        _give_priority(pod, spec, objects)
    else:
        for name in ("priority", "preemptionPolicy"):
            if spec.get(name) is None and peek(old, "spec", name) is not None:
                spec[name] = old["spec"][name]
    _tolerate_lost_nodes(spec)
    if old is None:
        if spec.get("nodeName"):
            _label_topology(pod, spec["nodeName"], objects)
        _give_runtime(pod, spec, objects)
        _check_limits(pod, objects)


def _admit_resize(pod: Tree, objects: Objects) -> None:
    """The limits of the namespace hold for what containers grow to; a resize leaves no note about defaults."""
    for limit_range in objects.list(_LIMIT_RANGE, text(pod, "metadata", "namespace")):
        limit_ranger.apply(limit_range, {"spec": section(pod, "spec")})
    _check_limits(pod, objects)


def _check_limits(pod: Tree, objects: Objects) -> None:
    for limit_range in objects.list(_LIMIT_RANGE, text(pod, "metadata", "namespace")):
        problems = limit_ranger.check_pod(limit_range, pod)
        if problems:
            raise _refused(pod, limit_ranger.said(problems))


def _label_topology(obj: Tree, node: str, objects: Objects) -> None:
    """Where the node is, so that a pod can know it."""
    labels = peek(objects.get(_NODE, "", node) or {}, "metadata", "labels") or {}
    found = {name: labels[name] for name in _TOPOLOGY if name in labels}
    if found:
        metadata = section(obj, "metadata")
        metadata["labels"] = {**(metadata.get("labels") or {}), **found}


def _give_account(pod: Tree, spec: Tree, namespace: str, objects: Objects, chance: random.Random) -> None:
    name = spec.get("serviceAccountName") or "default"
    account = objects.get(_SERVICE_ACCOUNT, namespace, name)
    if account is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise _refused(pod, why)
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    wish = spec.get("automountServiceAccountToken")
    if wish is None:
        wish = account.get("automountServiceAccountToken")
    if wish is not False:
        _mount_token(spec, chance)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(secret) for secret in account["imagePullSecrets"]]


def _mount_token(spec: Tree, chance: random.Random) -> None:
    volumes = items(spec, "volumes")
    present = next((v["name"] for v in volumes if (v.get("name") or "").startswith(_TOKEN_VOLUME)), "")
    name = present or _TOKEN_VOLUME + "".join(chance.choice(_SUFFIX) for _ in range(5))
    needed = False
    for container in (*items(spec, "initContainers"), *items(spec, "containers")):
        if all(mount.get("mountPath") != _TOKEN_PATH for mount in items(container, "volumeMounts")):
            mount = {"name": name, "readOnly": True, "mountPath": _TOKEN_PATH}
            container["volumeMounts"] = [*items(container, "volumeMounts"), mount]
            needed = True
    if needed and not present:
        spec["volumes"] = [*volumes, {"name": name, "projected": _token_source()}]


def _token_source() -> Tree:
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]
                }
            },
        ],
        "defaultMode": 0o644,
    }


def _give_priority(pod: Tree, spec: Tree, objects: Objects) -> None:
    name = spec.get("priorityClassName")
    chosen: Tree | None
    if name:
        chosen = objects.get(_PRIORITY_CLASS, "", name)
        if chosen is None:
            raise _refused(pod, f"no PriorityClass with name {name} was found")
    else:
        candidates = [found for found in objects.list(_PRIORITY_CLASS) if found.get("globalDefault")]
        chosen = min(candidates, key=lambda found: found.get("value", 0), default=None)
    priority = (chosen or {}).get("value", 0)
    policy = (chosen or {"preemptionPolicy": "PreemptLowerPriority"}).get("preemptionPolicy")
    if chosen is not None:
        spec["priorityClassName"] = text(chosen, "metadata", "name")
    computed = "must not be provided in pod spec; priority admission controller computed"
    said = spec.get("priority")
    if said is not None and said != priority:
        why = f"the integer value of priority ({said}) {computed} {priority} from the given PriorityClass name"
        raise _refused(pod, why)
    spec["priority"] = priority
    if policy is not None:
        said = spec.get("preemptionPolicy")
        if said is not None and said != policy:
            why = f"the string value of PreemptionPolicy ({said}) {computed} {policy} from the given PriorityClass name"
            raise _refused(pod, why)
        spec["preemptionPolicy"] = policy


def _tolerate_lost_nodes(spec: Tree) -> None:
    for taint in _EVICTING_TAINTS:
        tolerations = items(spec, "tolerations")
        if not any(_tolerates(toleration, taint) for toleration in tolerations):
            more = {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _EVICTED_AFTER}
            spec["tolerations"] = [*tolerations, more]


def _tolerates(toleration: Tree, taint: str) -> bool:
    return (toleration.get("key") or taint) == taint and (toleration.get("effect") or "NoExecute") == "NoExecute"


def _give_runtime(pod: Tree, spec: Tree, objects: Objects) -> None:
    name = spec.get("runtimeClassName")
    if name is None:
        return
    runtime = objects.get(_RUNTIME_CLASS, "", name)
    if runtime is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    overhead = peek(runtime, "overhead", "podFixed")
    if runtime.get("overhead") is not None:
        if spec.get("overhead") and not same(spec["overhead"], overhead):
            raise _refused(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = dict(overhead or {})
    for key, value in (peek(runtime, "scheduling", "nodeSelector") or {}).items():
        chosen = section(spec, "nodeSelector").setdefault(key, value)
        if chosen != value:
            rule = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {chosen}"
            raise _refused(pod, f"conflict: {rule}")
    for toleration in items(runtime.get("scheduling"), "tolerations"):
        if toleration not in items(spec, "tolerations"):
            spec["tolerations"] = [*items(spec, "tolerations"), dict(toleration)]


def _admit_claim(claim: Tree, old: Tree | None, objects: Objects, chance: random.Random) -> None:
    if old is None:
        _protect(claim, "kubernetes.io/pvc-protection")
    spec = section(claim, "spec")
    annotated = peek(claim, "metadata", "annotations", _OLD_CLASS)
    if spec.get("storageClassName") is None and annotated is None:
        marks = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
        name = _default_class(objects.list(_STORAGE_CLASS), *marks)
        if name:
            spec["storageClassName"] = name
    for limit_range in objects.list(_LIMIT_RANGE, text(claim, "metadata", "namespace")):
        problems = limit_ranger.check_claim(limit_range, claim)
        if problems:
            resource = GroupResource("", "persistentvolumeclaims")
            raise forbidden(resource, text(claim, "metadata", "name"), limit_ranger.said(problems))


def _check_growth(claim: Tree, old: Tree, objects: Objects) -> None:
    sizes = [Quantity(str(peek(each, "spec", "resources", "requests", "storage") or "0")) for each in (old, claim)]
    if sizes[1] <= sizes[0]:
        return
    resource, name = GroupResource("", "persistentvolumeclaims"), text(claim, "metadata", "name")
    if peek(old, "status", "phase") != "Bound":
        raise forbidden(resource, name, "Only bound persistent volume claims can be expanded")
    classes = {_class_name(each) for each in (old, claim)}
    chosen = objects.get(_STORAGE_CLASS, "", next(iter(classes))) if len(classes) == 1 else None
    if chosen is None or not chosen.get("allowVolumeExpansion"):
        why = (
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support "
            "resize"
        )
        raise forbidden(resource, name, why)


def _class_name(claim: Tree) -> str:
    annotated = peek(claim, "metadata", "annotations", _OLD_CLASS)
    return str(annotated if annotated is not None else peek(claim, "spec", "storageClassName") or "")


def _admit_volume(volume: Tree, old: Tree | None, objects: Objects, chance: random.Random) -> None:
    if old is None:
        _protect(volume, "kubernetes.io/pv-protection")


def _admit_attributes_class(attributes: Tree, old: Tree | None, objects: Objects, chance: random.Random) -> None:
    if old is None:
        _protect(attributes, "kubernetes.io/vac-protection")


def _admit_ingress(ingress: Tree, old: Tree | None, objects: Objects, chance: random.Random) -> None:
    spec = section(ingress, "spec")
    annotated = peek(ingress, "metadata", "annotations", "kubernetes.io/ingress.class")
    if old is None and spec.get("ingressClassName") is None and annotated is None:
        name = _default_class(objects.list(_INGRESS_CLASS), "ingressclass.kubernetes.io/is-default-class")
        if name:
            spec["ingressClassName"] = name


def _admit_node(node: Tree, old: Tree | None, objects: Objects, chance: random.Random) -> None:
    taints = items(node.get("spec"), "taints")
    taint = {"key": _EVICTING_TAINTS[0], "effect": "NoSchedule"}
    if old is None and not any(all(present.get(n) == v for n, v in taint.items()) for present in taints):
        section(node, "spec")["taints"] = [*taints, taint]


def _admit_priority_class(priority: Tree, old: Tree | None, objects: Objects, chance: random.Random) -> None:
    if not priority.get("globalDefault"):
        return
    name = text(priority, "metadata", "name")
    others = [found for found in objects.list(_PRIORITY_CLASS) if found.get("globalDefault")]
    chosen = min(others, key=lambda found: found.get("value", 0), default=None)
    if chosen is not None and (old is None or text(chosen, "metadata", "name") != name):
        resource = GroupResource("scheduling.k8s.io", "priorityclasses")
        present = text(chosen, "metadata", "name")
        why = f"PriorityClass {present} is already marked as default. Only one default can exist"
        raise forbidden(resource, name, why)


def _protect(obj: Tree, finalizer: str) -> None:
    metadata = section(obj, "metadata")
    finalizers = metadata.get("finalizers") or []
    if finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]


def _default_class(classes: Iterable[Tree], *annotations: str) -> str:
    """The newest of those marked as default; of two of the same age the first by name."""
    marked = [c for c in classes if any(peek(c, "metadata", "annotations", name) == "true" for name in annotations)]
    marked.sort(key=lambda found: text(found, "metadata", "name"))
    marked.sort(key=lambda found: text(found, "metadata", "creationTimestamp"), reverse=True)
    return text(marked[0], "metadata", "name") if marked else ""


def _refused(pod: Tree, why: str) -> StatusError:
    return forbidden(_PODS, text(pod, "metadata", "name"), why)


_STEPS: Final[Mapping[tuple[str, str], Callable[[Tree, Tree | None, Objects, random.Random], None]]] = {
    ("", "Node"): _admit_node,
    ("", "PersistentVolume"): _admit_volume,
    ("", "PersistentVolumeClaim"): _admit_claim,
    ("", "Pod"): _admit_pod,
    ("networking.k8s.io", "Ingress"): _admit_ingress,
    ("scheduling.k8s.io", "PriorityClass"): _admit_priority_class,
    ("storage.k8s.io", "VolumeAttributesClass"): _admit_attributes_class,
}
