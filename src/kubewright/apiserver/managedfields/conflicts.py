"""Conflicts of an apply: fields of the intent that other managers own with another value.

Message and causes are those of kube-apiserver, which kubectl prints and people search for
(k8s.io/apimachinery/pkg/util/managedfields/internal/conflict.go).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from kubewright.apiserver.managedfields.path_elements import path_element_text
from kubewright.apiserver.wire.status_errors import StatusError, status_error

__all__ = ("ApplyConflict", "Conflict", "Owner", "conflict_error")


_MAX_CONFLICTS: Final = 1_000
_MAX_TEXT: Final = 256 * 1024
"""Characters of their paths after which no more conflicts are listed."""


class Owner(NamedTuple):
    """The identity of an entry. A manager has one entry for Apply in all versions: its `api_version` is empty here."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    @property
    def identity(self) -> str:
        """The text by which kube-apiserver identifies and sorts owners (internal/managedfields.go)."""
        parts = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        given = {name: value for name, value in parts.items() if value}
        return json.dumps(given, separators=(",", ":"), ensure_ascii=False)

    def __str__(self) -> str:
        text = json.dumps(self.manager, ensure_ascii=False)
        if self.subresource:
            text += f" with subresource {json.dumps(self.subresource, ensure_ascii=False)}"
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


@final
@dataclass(frozen=True, slots=True)
class Conflict:
    """A field of the intent and its other owner."""

    owner: Owner
    steps: tuple[str, ...]

    @property
    def path(self) -> str:
        """The path of the field, such as `.spec.containers[name="web"].image`."""
        return "".join(map(path_element_text, self.steps))


@final
class ApplyConflict(Exception):
    """An intent without force would change fields of other managers."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        identities = {owner: owner.identity for owner in {conflict.owner for conflict in conflicts}}
        self.conflicts = tuple(sorted(conflicts, key=lambda conflict: identities[conflict.owner]))
        super().__init__(_message(self.conflicts))


def _message(conflicts: Sequence[Conflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: conflict with {conflicts[0].owner}: {conflicts[0].path}"
    lines: list[str] = []
    owner: Owner | None = None
    for conflict in _reported(conflicts):
        if conflict.owner != owner:
            owner = conflict.owner
            lines.append(f"conflicts with {owner}:")
        lines.append(f"- {conflict.path}")
    text = "\n".join(lines)
    return f"Apply failed with {len(conflicts)} conflicts: {text}"


def _reported(conflicts: Sequence[Conflict]) -> Iterator[Conflict]:
    """The conflicts that a response lists; kube-apiserver lists all of them."""
    length = 0
    for conflict in conflicts[:_MAX_CONFLICTS]:
        yield conflict
        length += sum(map(len, conflict.steps))
        if length > _MAX_TEXT:
            return


def conflict_error(conflict: ApplyConflict) -> StatusError:
    """409 with a cause for each conflicting field."""
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {one.owner}", "field": one.path}
        for one in _reported(conflict.conflicts)
    ]
    return status_error(409, "Conflict", str(conflict), details={"causes": causes})
