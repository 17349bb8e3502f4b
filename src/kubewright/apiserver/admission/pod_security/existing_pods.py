"""What the pods that are already in a namespace break of a level it is about to enforce.

They may stay; whoever changes the labels is told. `plugin` asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubewright.apiserver.admission.pod_security.levels import Standard
from kubewright.apiserver.admission.pod_security.standards import violations
from kubewright.apiserver.admission.pod_security.subjects import subject_of
from kubewright.apiserver.builtin.trees import Tree, items
from kubewright.apiserver.storage.store import Table
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("warnings_about",)

_MOST: Final = 3000
"""More pods than these are not looked at."""


def warnings_about(pods: Table, namespace: str, standard: Standard) -> list[str]:
    """One line for each way to break the rules, with the name of a pod that does; a heading before them."""
    trees = [decode_json(entry.value) for entry in pods.entries(namespace)]
    names: dict[str, list[str]] = {}
    for pod in _chosen(trees):
        broken = violations(standard, subject_of(pod))
        if broken:
            why = ", ".join(violation.reason for violation in broken)
            names.setdefault(why, []).append(str(pod["metadata"]["name"]))
    said = []
    if len(trees) > _MOST:
        said.append(
            f"new PodSecurity enforce level only checked against the first {_MOST} of {len(trees)} existing pods"
        )
    if names:
        said.append(f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{standard}"')
    return said + sorted(f"{_named(who)}: {why}" for why, who in names.items())


def _chosen(pods: list[Tree]) -> list[Tree]:
    """As many as are looked at: of pods that have the same controller one comes first, for they are alike."""
    if len(pods) <= _MOST:
        return pods
    first: list[Tree] = []
    alike: list[Tree] = []
    seen = set()
    for pod in pods:
        owner = next(
            (item.get("uid") for item in items(pod["metadata"], "ownerReferences") if item.get("controller")), None
        )
        (alike if owner in seen else first).append(pod)
        if owner is not None:
            seen.add(owner)
    return [*first, *alike][:_MOST]


def _named(pods: Sequence[str]) -> str:
    others = len(pods) - 1
    more = f" (and {others} other pod{'' if others == 1 else 's'})" if others else ""
    return f"{min(pods)}{more}"
