"""Files that hold secrets: written whole or not at all, and readable by their owner alone.

Used for kubeconfigs, keys and the state of local clusters.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ("write_private",)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, all at once: nobody ever sees half of it or wider permissions."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
