"""The judge of pod security: refuses pods, warns of pods and templates, and has its say about the labels themselves.

Part of every kube-apiserver, and the same here: nothing is configured, nobody is exempt. It knows the namespaces that
have such labels, so that a write elsewhere costs no look into the store.
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
_ELSEWHERE: Final = frozenset(
    {"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"},
)
"""Subresources of a pod that do not change what it asks for."""
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
"""Where in an object the pods it will make are described, by table."""


@final
class PodSecurity:
    """The judge."""

    def __init__(self, store: Store) -> None:
        self._pods = store.table(_PODS)
        self._policies: dict[str, Policy] = {}
        namespaces = store.table(_NAMESPACES)
        for entry in namespaces.entries():
            self._note(entry.key, entry)
        namespaces.watch(self)

    # namespaces

    def deliver(self, change: Change) -> None:
        """A namespace came, changed or went."""
        self._note(change.key, change.new)

    def table_gone(self) -> None:
        """Never: there are always namespaces."""

    def _note(self, name: str, entry: Entry | None) -> None:
        if entry is not None and LABELS.encode() in entry.value:
            self._policies[name] = policy_of(peek(decode_json(entry.value), "metadata", "labels"))
        else:
            self._policies.pop(name, None)

    # what admission asks

    def handles(self, attributes: Attributes) -> bool:
        """Whether it is about a pod, a namespace, or a template where somebody wants to hear of it."""
        table = attributes.resource.table
        if table == _PODS:
            return attributes.operation in _WRITES and attributes.subresource not in _ELSEWHERE
        if attributes.namespace not in self._policies and table != _NAMESPACES:
            return False
        is_known = table in _TEMPLATES or table == _NAMESPACES
        return is_known and not attributes.subresource and attributes.operation in _WRITES

    async def validate(self, attributes: Attributes) -> None:
        """Refuse, or warn."""
        table = attributes.resource.table
        if table == _NAMESPACES:
            self._judge_labels(attributes)
        elif table == _PODS:
            self._judge_pod(attributes)
        else:
            self._judge_template(attributes, _TEMPLATES[table])

    def _judge_labels(self, attributes: Attributes) -> None:
        new, old = _asked(attributes.object), _asked(attributes.old)
        if new.errors and new.errors != old.errors:
            raise invalid(attributes.resource.kind, attributes.name, new.errors)
        if attributes.operation == "CREATE" or new.enforce == old.enforce or new.enforce.level == "privileged":
            return
        if new.enforce.minor == old.enforce.minor and not stricter(new.enforce, old.enforce):
            return
        for text in warnings_about(self._pods, attributes.name, new.enforce):
            _warn(attributes, text)

    def _judge_pod(self, attributes: Attributes) -> None:
        policy = self._policies.get(attributes.namespace, UNLABELLED)
        if policy.is_open:
            attributes.annotations[f"{LABELS}enforce-policy"] = str(UNLABELLED.enforce)
            return
        pod = attributes.object or {}
        if attributes.old is not None and not _is_another(pod, attributes.old):
            return
        attributes.annotations[f"{LABELS}enforce-policy"] = str(policy.enforce)
        broken = _broken_by(pod)
        refused = broken(policy.enforce)
        self._note_in_audit(attributes, policy, broken)
        if refused:
            why = f'violates PodSecurity "{policy.enforce}": {refused}'
            raise forbidden(attributes.resource.group_resource, attributes.name, why)
        self._tell(attributes, policy, broken)

    def _judge_template(self, attributes: Attributes, path: tuple[str, ...]) -> None:
        policy = self._policies[attributes.namespace]
        template: Tree | None = peek(attributes.object, *path)
        if template is None or (not policy.errors and policy.warn.level == policy.audit.level == "privileged"):
            return
        broken = _broken_by(template)
        self._note_in_audit(attributes, policy, broken)
        self._tell(attributes, policy, broken)

    def _note_in_audit(self, attributes: Attributes, policy: Policy, broken: Callable[[Standard], str]) -> None:
        if policy.errors:
            attributes.annotations[f"{LABELS}error"] = f"Failed to parse policy: {summary(policy.errors)}"
        noted = broken(policy.audit)
        if noted:
            attributes.annotations[f"{LABELS}audit-violations"] = f'would violate PodSecurity "{policy.audit}": {noted}'

    def _tell(self, attributes: Attributes, policy: Policy, broken: Callable[[Standard], str]) -> None:
        told = broken(policy.warn)
        if told:
            _warn(attributes, f'would violate PodSecurity "{policy.warn}": {told}')


def _asked(namespace: Tree | None) -> Policy:
    return policy_of(peek(namespace, "metadata", "labels"))


def _broken_by(pod: Tree) -> Callable[[Standard], str]:
    """What a pod breaks of any standard, in words; each is looked at once, for modes often agree."""
    subject = subject_of(pod)
    known: dict[Standard, str] = {}

    def broken(standard: Standard) -> str:
        if standard not in known:
            known[standard] = ", ".join(map(str, violations(standard, subject)))
        return known[standard]

    return broken


def _is_another(pod: Tree, old: Tree) -> bool:
    """Whether other images run in it than before: nothing else that the rules look at can be changed in a pod."""
    spec, before = pod.get("spec") or {}, old.get("spec") or {}
    for name in ("containers", "initContainers"):
        if _images(spec, name) != _images(before, name):
            return True
    ran: dict[Any, Any] = {
        item.get("name"): item.get("image") for item in reversed(items(before, "ephemeralContainers"))
    }
    return any(
        item.get("name") not in ran or ran[item.get("name")] != item.get("image")
        for item in items(spec, "ephemeralContainers")
    )


def _images(spec: Tree, name: str) -> list[str]:
    return [str(item.get("image") or "") for item in items(spec, name)]


def _warn(attributes: Attributes, text: str) -> None:
    if text not in attributes.warnings:
        attributes.warnings.append(text)
