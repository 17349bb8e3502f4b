"""A pod or a pod template as the checks see it, and the words of their violations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from kubewright.apiserver.builtin.trees import Tree, items

__all__ = ("Check", "Container", "Subject", "Violation", "containers_named", "listed", "plural", "set_by", "subject_of")

_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


@final
@dataclass(frozen=True, slots=True)
class Container:
    """A container."""

    name: str
    security: Tree
    tree: Tree


@final
@dataclass(frozen=True, slots=True)
class Subject:
    """A pod or a pod template."""

    annotations: Tree
    spec: Tree
    security: Tree
    containers: tuple[Container, ...]

    @property
    def is_windows(self) -> bool:
        """Whether it is for Windows, which has no capabilities, seccomp or AppArmor."""
        return (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def has_user_namespace(self) -> bool:
        """Whether it has a user namespace, so that its root is not the node's."""
        return self.spec.get("hostUsers") is False

    def setters(self, name: str, bad: Callable[[Any], bool]) -> tuple[list[str], list[Any]]:
        """Who sets a field of the security context to a bad value (pod and containers, as text), and these values."""
        values = []
        who = []
        value = self.security.get(name)
        if value is not None and bad(value):
            who.append("pod")
            values.append(value)
        names = []
        for container in self.containers:
            value = container.security.get(name)
            if value is not None and bad(value):
                names.append(container.name)
                values.append(value)
        if names:
            who.append(containers_named(names))
        return who, values


@final
@dataclass(frozen=True, slots=True)
class Violation:
    """A failed check."""

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


Check = Callable[[Subject], Violation | None]
"""One check: the violation of a pod, if any."""


def subject_of(pod: Tree) -> Subject:
    """The subject of a pod or a pod template."""
    spec = pod.get("spec") or {}
    return Subject(
        annotations=(pod.get("metadata") or {}).get("annotations") or {},
        spec=spec,
        security=spec.get("securityContext") or {},
        containers=tuple(_containers(spec)),
    )


def _containers(spec: Tree) -> Iterator[Container]:
    for name in _LISTS:
        for tree in items(spec, name):
            yield Container(str(tree.get("name") or ""), tree.get("securityContext") or {}, tree)


def plural(count: int, one: str, many: str = "") -> str:
    """Singular or plural, by the count."""
    return one if count == 1 else many or f"{one}s"


def listed(values: Iterable[str]) -> str:
    """Quoted values, separated by commas."""
    return ", ".join(f'"{value}"' for value in values)


def containers_named(names: Sequence[str]) -> str:
    """`container "a"` or `containers "a", "b"`."""
    return f"{plural(len(names), 'container')} {listed(names)}"


def set_by(who: Sequence[str]) -> str:
    """`pod and containers "a", "b"`."""
    return " and ".join(who)
