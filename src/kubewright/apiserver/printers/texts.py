"""Texts that several printers share: containers, labels, selectors, lists with a limit.

An absent value is `<none>`, `<unset>` or empty, as in kube-apiserver's printer of the same column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kubewright.api.selectors import Selector
from kubewright.apiserver.builtin.trees import Tree, items, peek, text
from kubewright.errors import DecodeError

__all__ = (
    "NONE",
    "UNKNOWN",
    "UNSET",
    "container_cells",
    "flag",
    "labels_text",
    "list_with_more",
    "name_of",
    "number",
    "selector_text",
    "status_of",
)

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"


def name_of(tree: Tree) -> str:
    """The name of an object."""
    return text(tree, "metadata", "name")


def number(tree: Tree | None, *path: str) -> int:
    """The integer at a path; zero if there is none."""
    found = peek(tree, *path)
    return found if isinstance(found, int) else 0


def flag(tree: Tree | None, *path: str, default: bool = False) -> bool:
    """The boolean at a path."""
    found = peek(tree, *path)
    return found if isinstance(found, bool) else default


def status_of(conditions: Iterable[Tree], kind: str) -> str | None:
    """The status of the first condition of a type."""
    for condition in conditions:
        if condition.get("type") == kind:
            return text(condition, "status")
    return None


def container_cells(pod_spec: Tree | None) -> tuple[str, str]:
    """The names and the images of the containers of a pod spec."""
    containers = items(pod_spec, "containers")
    return ",".join(text(one, "name") for one in containers), ",".join(text(one, "image") for one in containers)


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Labels, sorted: `app=web,tier=front`."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def selector_text(selector: Mapping[str, Any] | None, *, empty: str = NONE, invalid: str = "<error>") -> str:
    """A label selector in one line."""
    if not selector:
        return empty
    try:
        return str(Selector.from_structured(selector)) or empty
    except DecodeError:
        return invalid


def list_with_more(words: Sequence[str], limit: int, *, separator: str = ",", count: int | None = None) -> str:
    """The first items of a list, and the number of further ones; `count` is the total if the list was cut before."""
    total = len(words) if count is None else count
    shown = separator.join(words[:limit])
    return f"{shown} + {total - limit} more..." if len(words) > limit else shown
