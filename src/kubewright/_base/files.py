"""Files that hold secrets: written whole or not at all, and readable by their owner alone.

Used for kubeconfigs, keys and the state of local clusters.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ("private_file", "write_private")


def private_file(folder: Path | None, *, prefix: str) -> tuple[int, Path]:
    """A new file that only its owner can read, open for writing, under a name that nobody can guess.

    Without a folder it goes where the system has its temporary files.
    """
    if folder is None:
        import tempfile  # brings shutil and every way to compress, hence only where there is no better place

        folder = Path(tempfile.gettempdir())
    path = folder / f"{prefix}{os.urandom(8).hex()}"
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=0o600), path


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, all at once: nobody ever sees half of it or wider permissions."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = private_file(path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
