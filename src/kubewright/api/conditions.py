"""Conditions: aspects of an object's state, each with a status and a reason (metav1.Condition).

Write them with `set_condition` only: it keeps `lastTransitionTime` unless the status changes (apimachinery:
pkg/api/meta/conditions.go), so that setting the same condition twice changes nothing and causes no write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableSequence
from datetime import UTC, datetime
from typing import Literal

from kubewright.api.model import Model

__all__ = ("Condition", "ConditionStatus", "find_condition", "is_true", "remove_condition", "set_condition")

ConditionStatus = Literal["True", "False", "Unknown"]


class Condition(Model, omit_empty=True):
    """One aspect of an object's state, such as Ready."""

    type: str
    status: str
    """`True`, `False` or `Unknown`."""
    observed_generation: int | None = None
    last_transition_time: datetime | None = None
    """When `status` last changed."""
    reason: str | None = None
    """One CamelCase word for programs."""
    message: str | None = None
    """A sentence for people."""


def find_condition(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((condition for condition in conditions if condition.type == kind), None)


def is_true(conditions: Iterable[Condition], kind: str) -> bool:
    """Whether there is a condition of that type with status `True`."""
    condition = find_condition(conditions, kind)
    return condition is not None and condition.status == "True"


def set_condition(
    conditions: MutableSequence[Condition],
    kind: str,
    status: bool | ConditionStatus | None,
    *,
    reason: str = "",
    message: str = "",
    observed_generation: int | None = None,
    now: datetime | None = None,
) -> bool:
    """Set or add a condition; True if anything changed.

    A status of None is Unknown. Kubernetes requires a reason; by default it is made from the type and the status.
    """
    text = _status_text(status)
    wanted = Condition(
        type=kind,
        status=text,
        observed_generation=observed_generation,
        reason=reason or _reason(kind, text),
        message=message,
    )
    present = find_condition(conditions, kind)
    if present is None:
        wanted.last_transition_time = now or _now()
        conditions.append(wanted)
        return True
    flipped = present.status != text
    wanted.last_transition_time = (now or _now()) if flipped else present.last_transition_time
    if wanted == present:
        return False
    conditions[conditions.index(present)] = wanted
    return True


def remove_condition(conditions: MutableSequence[Condition], kind: str) -> bool:
    """Remove the condition of that type; True if it was there."""
    present = find_condition(conditions, kind)
    if present is None:
        return False
    conditions.remove(present)
    return True


def _status_text(status: bool | ConditionStatus | None) -> str:
    if status is None:
        return "Unknown"
    return str(status) if isinstance(status, bool) else status


def _reason(kind: str, text: str) -> str:
    # A type may be qualified (example.io/Ready); a reason is one word.
    word = re.sub(r"\W", "", kind.rpartition("/")[2]) or "Set"
    return {"True": word, "False": f"Not{word}"}.get(text, "Unknown")


def _now() -> datetime:
    # metav1.Time has whole seconds; a fraction would differ from what is read back.
    return datetime.now(UTC).replace(microsecond=0)
