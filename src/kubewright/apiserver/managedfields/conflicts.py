"""The refusal of an apply: fields that others own, and would have to change.

The wording and the causes are those of the real server, which kubectl shows and people search for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from kubewright.apiserver.managedfields.path_elements import step_text
from kubewright.apiserver.wire.status_errors import StatusError, status_error

__all__ = ("ApplyConflict", "Conflict", "Owner", "refusal")


class Owner(NamedTuple):
    """Whose entry it is. An entry of Apply is the same one in every version: there its `api_version` is empty."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    @property
    def identity(self) -> str:
        """The text by which the real server knows and sorts owners."""
        parts = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        said = {name: value for name, value in parts.items() if value}
        return json.dumps(said, separators=(",", ":"), ensure_ascii=False)

    def __str__(self) -> str:
        text = json.dumps(self.manager, ensure_ascii=False)
        if self.subresource:
            text += f" with subresource {json.dumps(self.subresource, ensure_ascii=False)}"
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


@final
@dataclass(frozen=True, slots=True)
class Conflict:
    """One field, and who else owns it."""

    owner: Owner
    steps: tuple[str, ...]

    @property
    def path(self) -> str:
        """The field as people read it, such as `.spec.containers[name="web"].image`."""
        return "".join(map(step_text, self.steps))


@final
class ApplyConflict(Exception):
    """An intent would change fields that others own, and was not to be forced."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        self.conflicts = tuple(sorted(conflicts, key=lambda conflict: conflict.owner.identity))
        super().__init__(_message(self.conflicts))


def _message(conflicts: Sequence[Conflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: conflict with {conflicts[0].owner}: {conflicts[0].path}"
    lines: list[str] = []
    owner: Owner | None = None
    for conflict in conflicts:
        if conflict.owner != owner:
            owner = conflict.owner
            lines.append(f"conflicts with {owner}:")
        lines.append(f"- {conflict.path}")
    text = "\n".join(lines)
    return f"Apply failed with {len(conflicts)} conflicts: {text}"


def refusal(conflict: ApplyConflict) -> StatusError:
    """409: the answer to an apply that conflicts, with one cause for each field."""
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {one.owner}", "field": one.path}
        for one in conflict.conflicts
    ]
    return status_error(409, "Conflict", str(conflict), details={"causes": causes})
