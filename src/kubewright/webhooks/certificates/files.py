"""A serving certificate in files that somebody else writes: cert-manager through a mounted Secret, or a person.

The files are looked at every few seconds and read again when they have changed; a kubelet swaps a mounted folder at
once. Half-written files are no harm: the server keeps what it has until the pair fits.
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
    """Watches `tls.crt` and `tls.key` in a folder."""

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
        self._given: tuple[bytes, bytes] | None = None

    async def current(self) -> tuple[bytes, bytes]:
        """Both files; waits until both are there."""
        while (pair := self._read()) is None:
            await self._clock.sleep(self._interval)
        self._given = pair
        return pair

    async def changed(self) -> None:
        """Returns when the files hold something else. While they are missing, nothing has changed."""
        while self._read() in (None, self._given):
            await self._clock.sleep(self._interval)

    def _read(self) -> tuple[bytes, bytes] | None:
        try:
            return self._certificate.read_bytes(), self._key.read_bytes()
        except OSError:
            return None

    def __str__(self) -> str:
        return f"{self._certificate} and {self._key}"
