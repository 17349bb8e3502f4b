"""The PodSecurity plugin: refuses pods, warns about pods and templates, and validates the labels of namespaces.

kube-apiserver: staging/src/k8s.io/pod-security-admission/admission/admission.go, with its default configuration: no
exemptions, privileged without labels. The plugin watches the labels of namespaces, so that a write in a namespace
without them costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, final

from kubewright.api.field_errors import summary
from kubewright.apiserver.admission.pod_security.existing_pods import warnings_about
from kubewright.apiserver.admission.pod_security.levels import LABELS, UNLABELLED, Policy, Standard, policy_of, stricter
from kubewright.apiserver.admission.pod_security.standards import violations
from kubewright.apiserver.admission.pod_security.subjects import subject_of
from kubewright.apiserver.builtin.trees import Tree, items, peek
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.storage.store import Change, Entry, Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import forbidden, invalid

__all__ = ("PodSecurity",)

_PODS: Final = "/pods"
_NAMESPACES: Final = "/namespaces"
_WRITES: Final = ("CREATE", "UPDATE")
_IGNORED_SUBRESOURCES: Final = frozenset(
    {"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"},
)
"""Subresources of a pod that do not change its spec."""
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "/podtemplates": ("template",),
    "/replicationcontrollers": ("spec", "template"),
    "apps/daemonsets": ("spec", "template"),
    "apps/deployments": ("spec", "template"),
    "apps/replicasets": ("spec", "template"),
    "apps/statefulsets": ("spec", "template"),
    "batch/cronjobs": ("spec", "jobTemplate", "spec", "template"),
    "batch/jobs": ("spec", "template"),
}
"""The path of the pod template in an object, by table."""


@final
class PodSecurity:
    """Validates pods, objects with pod templates, and namespaces."""

    def __init__(self, store: Store) -> None:
        self._pods = store.table(_PODS)
        self._policies: dict[str, Policy] = {}
        namespaces = store.table(_NAMESPACES)
        for entry in namespaces.entries():
            self._update(entry.key, entry)
        namespaces.watch(self)

    # namespaces

    def deliver(self, change: Change) -> None:
        """A namespace was created, changed or deleted."""
        self._update(change.key, change.new)

    def table_gone(self) -> None:
        """Never called: the table stays."""

    def _update(self, name: str, entry: Entry | None) -> None:
        if entry is not None and LABELS.encode() in entry.value:
            self._policies[name] = policy_of(peek(decode_json(entry.value), "metadata", "labels"))
        else:
            self._policies.pop(name, None)

    # admission

    def handles(self, attributes: Attributes) -> bool:
        """Whether the write is of a pod, of a namespace, or of a pod template in a namespace with labels."""
        table = attributes.resource.table
        if table == _PODS:
            return attributes.operation in _WRITES and attributes.subresource not in _IGNORED_SUBRESOURCES
        if attributes.namespace not in self._policies and table != _NAMESPACES:
            return False
        is_known = table in _TEMPLATES or table == _NAMESPACES
        return is_known and not attributes.subresource and attributes.operation in _WRITES

    async def validate(self, attributes: Attributes) -> None:
        """Refuse a pod or labels, or warn."""
        table = attributes.resource.table
        if table == _NAMESPACES:
            self._validate_namespace(attributes)
        elif table == _PODS:
            self._validate_pod(attributes)
        else:
            self._check_template(attributes, _TEMPLATES[table])

    def _validate_namespace(self, attributes: Attributes) -> None:
        new, old = _policy_of_namespace(attributes.object), _policy_of_namespace(attributes.old)
        if new.errors and new.errors != old.errors:
            raise invalid(attributes.resource.kind, attributes.name, new.errors)
        if attributes.operation == "CREATE" or new.enforce == old.enforce or new.enforce.level == "privileged":
            return
        if new.enforce.minor == old.enforce.minor and not stricter(new.enforce, old.enforce):
            return
        for text in warnings_about(self._pods, attributes.name, new.enforce):
            _warn(attributes, text)

    def _validate_pod(self, attributes: Attributes) -> None:
        policy = self._policies.get(attributes.namespace, UNLABELLED)
        if policy.is_open:
            attributes.annotations[f"{LABELS}enforce-policy"] = str(UNLABELLED.enforce)
            return
        pod = attributes.object or {}
        if attributes.old is not None and not _is_significant(pod, attributes.old):
            return
        attributes.annotations[f"{LABELS}enforce-policy"] = str(policy.enforce)
        violated = _violations_of(pod)
        enforced = violated(policy.enforce)
        self._audit(attributes, policy, violated)
        if enforced:
            why = f'violates PodSecurity "{policy.enforce}": {enforced}'
            raise forbidden(attributes.resource.group_resource, attributes.name, why)
        self._warn(attributes, policy, violated)

    def _check_template(self, attributes: Attributes, path: tuple[str, ...]) -> None:
        policy = self._policies[attributes.namespace]
        template: Tree | None = peek(attributes.object, *path)
        if template is None or (not policy.errors and policy.warn.level == policy.audit.level == "privileged"):
            return
        violated = _violations_of(template)
        self._audit(attributes, policy, violated)
        self._warn(attributes, policy, violated)

    def _audit(self, attributes: Attributes, policy: Policy, violated: Callable[[Standard], str]) -> None:
        if policy.errors:
            attributes.annotations[f"{LABELS}error"] = f"Failed to parse policy: {summary(policy.errors)}"
        audited = violated(policy.audit)
        if audited:
            attributes.annotations[f"{LABELS}audit-violations"] = (
                f'would violate PodSecurity "{policy.audit}": {audited}'
            )

    def _warn(self, attributes: Attributes, policy: Policy, violated: Callable[[Standard], str]) -> None:
        warned = violated(policy.warn)
        if warned:
            _warn(attributes, f'would violate PodSecurity "{policy.warn}": {warned}')


def _policy_of_namespace(namespace: Tree | None) -> Policy:
    return policy_of(peek(namespace, "metadata", "labels"))


def _violations_of(pod: Tree) -> Callable[[Standard], str]:
    """The violations of a pod, by standard, as text; computed once for each, because modes often agree."""
    subject = subject_of(pod)
    known: dict[Standard, str] = {}

    def violated(standard: Standard) -> str:
        if standard not in known:
            known[standard] = ", ".join(map(str, violations(standard, subject)))
        return known[standard]

    return violated


def _is_significant(pod: Tree, old: Tree) -> bool:
    """Whether an update of a pod changes images: nothing else that the checks use can change in a pod."""
    spec, before = pod.get("spec") or {}, old.get("spec") or {}
    for name in ("containers", "initContainers"):
        if _images(spec, name) != _images(before, name):
            return True
    images: dict[Any, Any] = {
        item.get("name"): item.get("image") for item in reversed(items(before, "ephemeralContainers"))
    }
    return any(
        item.get("name") not in images or images[item.get("name")] != item.get("image")
        for item in items(spec, "ephemeralContainers")
    )


def _images(spec: Tree, name: str) -> list[str]:
    return [str(item.get("image") or "") for item in items(spec, name)]


def _warn(attributes: Attributes, text: str) -> None:
    attributes.warnings.add(text)
