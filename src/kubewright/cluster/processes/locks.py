"""A lock file that one process holds at a time, and that the kernel frees when its holder dies.

`binaries` uses it so that two processes build once; `keeper` and `real` so that a name or a data folder has
one owner. Advisory: it binds only those who ask.
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
    """An exclusive lock on a path; the file stays behind, empty, because removing it would race."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Take the lock if it is free; whether it is ours now."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def wait(self, *, waiting: Callable[[], None] | None = None, every: float = 0.2) -> Self:
        """Take the lock, trying until it is free; `waiting` is called before each pause.

        Polls rather than blocking in the kernel, so that Ctrl-C and progress work.
        """
        while not self.take():
            if waiting is not None:
                waiting()
            time.sleep(every)
        return self

    def release(self) -> None:
        """Give the lock back; nothing happens if it is not held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
