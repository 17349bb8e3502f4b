"""The Priority plugin: works out the priority of new pods, and allows one default PriorityClass only.

kube-apiserver: plugin/pkg/admission/priority/admission.go.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.apiserver.builtin.trees import Tree, peek, section, text
from kubewright.apiserver.kinds.admission import Attributes, admission_forbidden
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("Priority",)

_PODS: Final = "/pods"
_CLASSES: Final = "scheduling.k8s.io/priorityclasses"
_WRITES: Final = ("CREATE", "UPDATE")
_NO_CLASS: Final[Tree] = {"value": 0, "preemptionPolicy": "PreemptLowerPriority"}
_COMPUTED: Final = "must not be provided in pod spec; priority admission controller computed"


@final
class Priority:
    """Mutates pods and validates PriorityClasses."""

    def __init__(self, store: Store) -> None:
        self._classes = store.table(_CLASSES)

    def handles(self, attributes: Attributes) -> bool:
        table = attributes.resource.table
        return table in (_PODS, _CLASSES) and not attributes.subresource and attributes.operation in _WRITES

    async def mutate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        if attributes.resource.table != _PODS:
            return
        spec = section(attributes.object, "spec")
        if attributes.operation == "CREATE":
            self._set_priority(attributes, spec)
            return
        # An update need not repeat what this plugin set on create; validation refuses any other value.
        for name in ("priority", "preemptionPolicy"):
            if spec.get(name) is None and peek(attributes.old, "spec", name) is not None:
                spec[name] = peek(attributes.old, "spec", name)

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        if attributes.resource.table != _CLASSES or not attributes.object.get("globalDefault"):
            return
        default = self._default()
        if default is None:
            return
        present = text(default, "metadata", "name")
        if attributes.operation == "CREATE" or present != text(attributes.object, "metadata", "name"):
            why = f"PriorityClass {present} is already marked as default. Only one default can exist"
            raise admission_forbidden(attributes, why)

    def _set_priority(self, attributes: Attributes, spec: Tree) -> None:
        chosen = self._class_of(attributes, spec.get("priorityClassName") or "")
        if chosen is not _NO_CLASS:
            spec["priorityClassName"] = text(chosen, "metadata", "name")
        priority, policy = chosen.get("value", 0), chosen.get("preemptionPolicy")
        given = spec.get("priority")
        if given is not None and given != priority:
            why = f"the integer value of priority ({given}) {_COMPUTED} {priority} from the given PriorityClass name"
            raise admission_forbidden(attributes, why)
        spec["priority"] = priority
        if policy is None:
            return
        given = spec.get("preemptionPolicy")
        if given is not None and given != policy:
            why = f"the string value of PreemptionPolicy ({given}) {_COMPUTED} {policy}"
            raise admission_forbidden(attributes, f"{why} from the given PriorityClass name")
        spec["preemptionPolicy"] = policy

    def _class_of(self, attributes: Attributes, name: str) -> Tree:
        if not name:
            return self._default() or _NO_CLASS
        entry = self._classes.get(name)
        if entry is None:
            raise admission_forbidden(attributes, f"no PriorityClass with name {name} was found")
        found: Tree = decode_json(entry.value)
        return found

    def _default(self) -> Tree | None:
        """The default class; of several, which two servers may have allowed at once, the one of the lowest value."""
        trees = (decode_json(entry.value) for entry in self._classes.entries())
        return min(
            (tree for tree in trees if tree.get("globalDefault")), key=lambda tree: tree.get("value", 0), default=None
        )
