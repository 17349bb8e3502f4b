"""Files and folders that hold secrets: nobody but their owner can use them.

Used for kubeconfigs, keys, logs and the state of local clusters.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from kubewright.errors import ConfigError

__all__ = ("close_to_others", "open_private", "private_file", "private_folder", "write_private")


def private_folder(path: Path) -> None:
    """Create a folder that only its owner can use; one that exists is closed to others.

    A folder of another user, or one that all users share as they do `/tmp`, is a ConfigError: what is in it could be
    somebody else's.
    """
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if os.name != "posix":
        return
    found = path.stat()
    # To root every folder is as good as its own: in a container it works on a folder of the user outside.
    if os.geteuid() not in (found.st_uid, 0):
        raise ConfigError(f"The folder {path} belongs to another user; choose one of your own.")
    if found.st_mode & stat.S_ISVTX:
        raise ConfigError(f"The folder {path} is shared by all users; choose one of your own, such as one below it.")
    if found.st_mode & 0o077:
        path.chmod(stat.S_IMODE(found.st_mode) & 0o700)


def open_private(path: Path, *, append: bool = True) -> BinaryIO:
    """Open a file for writing that only its owner can read; one that exists is closed to others first.

    One of another user is an OSError: that user reads whatever is written to it.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC), mode=0o600)
    try:
        found = os.fstat(handle)
        if os.name == "posix" and stat.S_ISREG(found.st_mode) and os.geteuid() not in (found.st_uid, 0):
            raise PermissionError(errno.EPERM, "it belongs to another user", str(path))
        close_to_others(handle)
        return os.fdopen(handle, "ab" if append else "wb", buffering=0)
    except BaseException:
        os.close(handle)
        raise


def close_to_others(handle: int) -> None:
    """Take the rights of others from an open file; one of another user stays as that user has it."""
    found = os.fstat(handle)
    if os.name == "posix" and found.st_mode & 0o077 and stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
        os.fchmod(handle, stat.S_IMODE(found.st_mode) & 0o700)


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
