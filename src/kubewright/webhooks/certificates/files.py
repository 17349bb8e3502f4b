"""FileCertificates: a serving certificate in files that cert-manager (through a mounted Secret) or a person writes.

It polls the files every few seconds; a kubelet swaps a mounted folder at once. Half-written files do no harm: the
server keeps its certificate until certificate and key belong together.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, final

from kubewright._base.clock import Clock, SystemClock

__all__ = ("FileCertificates",)

_INTERVAL: Final = 2.0


@final
class FileCertificates:
    """A source that polls `tls.crt` and `tls.key` in a folder."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        certificate: str = "tls.crt",
        key: str = "tls.key",
        interval: float = _INTERVAL,
        clock: Clock | None = None,
    ) -> None:
        self._certificate = Path(folder) / certificate
        self._key = Path(folder) / key
        self._interval = interval
        self._clock = clock or SystemClock()
        self._served: tuple[bytes, bytes] | None = None

    async def current(self) -> tuple[bytes, bytes]:
        """The content of both files; waits until both exist."""
        while (pair := self._read()) is None:
            await self._clock.sleep(self._interval)
        self._served = pair
        return pair

    async def changed(self) -> None:
        """Returns when the content differs from what `current` returned last; missing files are no change."""
        while self._read() in (None, self._served):
            await self._clock.sleep(self._interval)

    def _read(self) -> tuple[bytes, bytes] | None:
        try:
            return self._certificate.read_bytes(), self._key.read_bytes()
        except OSError:
            return None

    def __str__(self) -> str:
        return f"{self._certificate} and {self._key}"
