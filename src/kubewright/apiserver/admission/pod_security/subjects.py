"""A pod, or the template of one, as the rules of pod security see it, and how they say what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from kubewright.apiserver.builtin.trees import Tree, items

__all__ = ("Contained", "Rule", "Subject", "Violation", "containers_named", "listed", "plural", "set_by", "subject_of")

_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


@final
@dataclass(frozen=True, slots=True)
class Contained:
    """A container."""

    name: str
    security: Tree
    tree: Tree


@final
@dataclass(frozen=True, slots=True)
class Subject:
    """A pod."""

    annotations: Tree
    spec: Tree
    security: Tree
    containers: tuple[Contained, ...]

    @property
    def is_windows(self) -> bool:
        """Whether it says that it is for Windows, which has no such thing as capabilities."""
        return (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def has_own_users(self) -> bool:
        """Whether its users are not those of the node."""
        return self.spec.get("hostUsers") is False

    def setters(self, name: str, bad: Callable[[Any], bool]) -> tuple[list[str], list[Any]]:
        """Who sets a member of the security context to something bad, in words, and to what."""
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
    """A rule that is broken, and how."""

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


Rule = Callable[[Subject], Violation | None]
"""One rule: what breaks it, if anything does."""


def subject_of(pod: Tree) -> Subject:
    """Of a pod or a template: whatever has metadata and a spec."""
    spec = pod.get("spec") or {}
    return Subject(
        annotations=(pod.get("metadata") or {}).get("annotations") or {},
        spec=spec,
        security=spec.get("securityContext") or {},
        containers=tuple(_containers(spec)),
    )


def _containers(spec: Tree) -> Iterator[Contained]:
    for name in _LISTS:
        for tree in items(spec, name):
            yield Contained(str(tree.get("name") or ""), tree.get("securityContext") or {}, tree)


def plural(count: int, one: str, many: str = "") -> str:
    """The word for that many."""
    return one if count == 1 else many or f"{one}s"


def listed(values: Iterable[str]) -> str:
    """In quotation marks, one after the other."""
    return ", ".join(f'"{value}"' for value in values)


def containers_named(names: Sequence[str]) -> str:
    """The containers of these names."""
    return f"{plural(len(names), 'container')} {listed(names)}"


def set_by(who: Sequence[str]) -> str:
    """All who set something."""
    return " and ".join(who)
