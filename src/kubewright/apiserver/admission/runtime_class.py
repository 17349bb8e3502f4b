"""The RuntimeClass plugin: a new pod gets the overhead, node selector and tolerations of its RuntimeClass.

kube-apiserver: plugin/pkg/admission/runtimeclass/admission.go.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.apiserver.builtin.trees import Tree, items, peek, section, semantic_equal
from kubewright.apiserver.kinds.admission import Attributes, admission_forbidden
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("RuntimeClass",)

_OTHER_OVERHEAD: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_NO_OVERHEAD: Final = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


@final
class RuntimeClass:
    """Mutates and validates new pods."""

    def __init__(self, store: Store) -> None:
        self._classes = store.table("node.k8s.io/runtimeclasses")

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.table == "/pods" and attributes.operation == "CREATE" and not attributes.subresource

    async def mutate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        spec = section(attributes.object, "spec")
        runtime_class = self._class_of(attributes, spec)
        if runtime_class is None:
            return
        overhead = _overhead_of(runtime_class)
        if overhead is not None:
            if spec.get("overhead") and not semantic_equal(spec["overhead"], overhead):
                raise admission_forbidden(attributes, _OTHER_OVERHEAD)
            spec["overhead"] = dict(overhead)
        for key, value in (peek(runtime_class, "scheduling", "nodeSelector") or {}).items():
            chosen = section(spec, "nodeSelector").setdefault(key, value)
            if chosen != value:
                rule = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {chosen}"
                raise admission_forbidden(attributes, f"conflict: {rule}")
        for toleration in items(runtime_class.get("scheduling"), "tolerations"):
            if toleration not in items(spec, "tolerations"):
                spec["tolerations"] = [*items(spec, "tolerations"), dict(toleration)]

    async def validate(self, attributes: Attributes) -> None:
        spec = (attributes.object or {}).get("spec") or {}
        runtime_class = self._class_of(attributes, spec)
        overhead = None if runtime_class is None else _overhead_of(runtime_class)
        if overhead is not None and not semantic_equal(spec.get("overhead") or {}, overhead):
            raise admission_forbidden(attributes, _OTHER_OVERHEAD)
        if overhead is None and spec.get("overhead") is not None:
            raise admission_forbidden(attributes, _NO_OVERHEAD)

    def _class_of(self, attributes: Attributes, spec: Tree) -> Tree | None:
        name = spec.get("runtimeClassName")
        if name is None:
            return None
        entry = self._classes.get(name)
        if entry is None:
            raise admission_forbidden(attributes, f'pod rejected: RuntimeClass "{name}" not found')
        found: Tree = decode_json(entry.value)
        return found


def _overhead_of(runtime_class: Tree) -> Tree | None:
    overhead = runtime_class.get("overhead")
    return None if overhead is None else overhead.get("podFixed") or {}
