"""The warnings about pods that violate a level which their namespace begins to enforce.

The pods stay; the client that changes the labels gets the warnings. Called by `plugin`.
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
"""At most so many pods are checked."""


def warnings_about(pods: Table, namespace: str, standard: Standard) -> list[str]:
    """A heading, and one line for each combination of violations with the name of a pod that has it."""
    trees = [decode_json(entry.value) for entry in pods.entries(namespace)]
    names: dict[str, list[str]] = {}
    for pod in _sample(trees):
        broken = violations(standard, subject_of(pod))
        if broken:
            why = ", ".join(violation.reason for violation in broken)
            names.setdefault(why, []).append(str(pod["metadata"]["name"]))
    lines = []
    if len(trees) > _MOST:
        lines.append(
            f"new PodSecurity enforce level only checked against the first {_MOST} of {len(trees)} existing pods"
        )
    if names:
        lines.append(f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{standard}"')
    return lines + sorted(f"{_named(who)}: {why}" for why, who in names.items())


def _sample(pods: list[Tree]) -> list[Tree]:
    """The pods to check: of those with the same controller one comes first, because they are alike."""
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
