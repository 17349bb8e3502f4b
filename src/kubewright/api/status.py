"""metav1.Status: the body of every API error, and of some successful deletes.

Plain data; the client's watch decodes it from ERROR events. `client.transport.responses` makes errors from response
bodies without it, because a proxy's body may be anything.
"""

from __future__ import annotations

from kubewright.api.metadata import ListMeta
from kubewright.api.model import Model, field

__all__ = ("ApiStatus", "StatusCause", "StatusDetails")


class StatusCause(Model, omit_empty=True):
    """One cause, often about one field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Model, omit_empty=True):
    """What the status is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] = []
    retry_after_seconds: int = 0


class ApiStatus(Model, omit_empty=True):
    """The response when there is no object to return. (Not to be confused with an object's `status`.)"""

    metadata: ListMeta = field(default_factory=ListMeta)
    status: str = ""
    """`Success` or `Failure`."""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0
