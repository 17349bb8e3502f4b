"""An API server that refuses some of what the operator writes."""

from types import TracebackType
from typing import Any, Self

from kubewright import Client
from kubewright.errors import Forbidden
from kubewright.k8s.core.v1 import Secret
from kubewright.testing import RunningOperator, time_limit

__all__ = ("Refusal", "refused")


class Refusal:
    """Answers every write of the operator below a path, at least so many times and until `may_end` is called."""

    def __init__(self, operator: RunningOperator, path: str, answer: Any, *, times: int) -> None:
        self.count = 0
        """How many writes were refused."""
        self._faults = operator.faults
        self._path = path
        self._answer = answer
        self._times = times
        self._may_end = False

    def may_end(self) -> None:
        """Let writes through once enough of them were refused."""
        self._may_end = True

    def __enter__(self) -> Self:
        self._faults.answer = self._refuse
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._faults.answer = None

    def _refuse(self, request: Any) -> Any:
        if request.method == "GET" or self._path not in request.path or self._is_over:
            return None
        self.count += 1
        return self._answer

    @property
    def _is_over(self) -> bool:
        return self._may_end and self.count >= self._times


async def refused(client: Client, secret: Secret) -> None:
    """Returns when a quota keeps the secret from being made: a server heeds one a moment after it is stored."""
    async with time_limit(60):
        while True:
            try:
                await client.create(secret, dry_run=True)
            except Forbidden as refusal:
                if "exceeded quota" in str(refusal):
                    return
