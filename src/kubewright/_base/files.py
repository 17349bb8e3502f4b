"""Files that hold secrets: written atomically, readable only by their owner.

Used for kubeconfigs, keys and the state of local clusters.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ("private_file", "write_private")


def private_file(folder: Path | None, *, prefix: str) -> tuple[int, Path]:
    """A new file that only its owner can read, open for writing, under an unguessable name.

    Without a folder it is made in the system's temporary folder.
    """
    if folder is None:
        import tempfile  # loads shutil and all compression modules, so only if it is needed

        folder = Path(tempfile.gettempdir())
    path = folder / f"{prefix}{os.urandom(8).hex()}"
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=0o600), path


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, atomically: nobody sees half of it, or wider permissions."""
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
