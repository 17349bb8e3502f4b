"""An advisory lock on a file, which the kernel releases when the process that holds it dies.

`binaries.finder` takes it so that two processes build once, `planes.background` so that a name has one cluster, and
`planes.plane_folder` so that a folder has one.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, final

__all__ = ("FileLock",)


@final
class FileLock:
    """An exclusive lock on a path; the empty file stays, because removing it would race."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free; whether this object holds it now."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def acquire(self, *, on_wait: Callable[[], None] | None = None, every: float = 0.2) -> Self:
        """Acquire the lock, trying until it is free; calls `on_wait` before each pause.

        Polls rather than blocking in the kernel, so that Ctrl-C and progress work.
        """
        while not self.try_acquire():
            if on_wait is not None:
                on_wait()
            time.sleep(every)
        return self

    def release(self) -> None:
        """Release the lock if it is held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
