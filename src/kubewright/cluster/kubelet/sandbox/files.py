"""The file system of a simulated container, in memory, for the lifetime of the container.

Volumes with content (ConfigMaps, Secrets) are mounted read-only at each exec. The total size is limited: it is for exec
and `kubectl cp`, not for data. Used by `sandboxes` and `commands`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Final, final

__all__ = ("Files", "absolute")

_MAX_BYTES: Final = 32 * 1024 * 1024
_FILE_BYTES: Final = 512
"""What a file or a folder takes beside its content."""
_FOLDERS: Final = ("bin", "dev", "etc", "home", "lib", "opt", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var")


@final
class Files:
    """Files by absolute path. Errors are OSErrors with the message a shell prints."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._size = 0
        self._folders: set[str] = {"/", *(f"/{name}" for name in _FOLDERS)}
        self._mounts: dict[str, Mapping[str, bytes]] = {}
        self._mounted_folders: set[str] = set()

    def mount(self, mount_point: str, files: Mapping[str, bytes] | None) -> None:
        """Mount files read-only on a folder; None creates an empty writable folder."""
        mount_point = absolute("/", mount_point)
        if files is None:
            self._add_folder(mount_point)
        else:
            self._mounts[mount_point] = files
            nested = (posixpath.dirname(f"{point}/{name}") for point in self._mounts for name in self._mounts[point])
            self._mounted_folders = {*nested, *self._mounts}

    def add_file(self, path: str, content: bytes) -> None:
        """Add a file and its parent folders."""
        self._add_folder(posixpath.dirname(path))
        self._put(path, content)

    def is_folder(self, path: str) -> bool:
        return path in self._folders or any(
            path == folder or folder.startswith(path.rstrip("/") + "/") for folder in self._mounted_folders
        )

    def is_file(self, path: str) -> bool:
        return self._content(path) is not None

    def read(self, path: str) -> bytes:
        if self.is_folder(path):
            raise OSError("Is a directory")
        found = self._content(path)
        if found is None:
            raise OSError("No such file or directory")
        return found

    def write(self, path: str, content: bytes) -> None:
        if self.is_folder(path):
            raise OSError("Is a directory")
        if self._is_mounted(path):
            raise OSError("Read-only file system")
        if not self.is_folder(posixpath.dirname(path)):
            raise OSError("No such file or directory")
        self._check_space(len(content) - len(self._files.get(path, b"")))
        self._put(path, content)

    def make_folder(self, path: str, *, parents: bool) -> None:
        if self.is_file(path) or (self.is_folder(path) and not parents):
            raise OSError("File exists")
        if not parents and not self.is_folder(posixpath.dirname(path)):
            raise OSError("No such file or directory")
        self._check_space(_FILE_BYTES * path.count("/"))
        self._add_folder(path)

    def remove(self, path: str, *, recursive: bool) -> None:
        if self._is_mounted(path):
            raise OSError("Read-only file system")
        if path in self._files:
            self._size -= _FILE_BYTES + len(self._files.pop(path))
            return
        if not self.is_folder(path):
            raise OSError("No such file or directory")
        if not recursive:
            raise OSError("Is a directory")
        walk = path.rstrip("/") + "/"
        self._files = {name: data for name, data in self._files.items() if not name.startswith(walk)}
        self._folders = {name for name in self._folders if name != path and not name.startswith(walk)} | {"/"}
        self._size = sum(map(len, self._files.values())) + _FILE_BYTES * (len(self._files) + len(self._folders))

    def names(self, folder: str) -> list[str]:
        """The entries of a folder, sorted."""
        walk = folder.rstrip("/") + "/"
        return sorted({name[len(walk) :].split("/")[0] for name in self._all() if name.startswith(walk)} - {""})

    def walk(self, path: str) -> list[str]:
        """All files below a folder, or the file itself."""
        if self.is_file(path):
            return [path]
        prefix = path.rstrip("/") + "/"
        return sorted(name for name in self._all() if name.startswith(prefix) and self.is_file(name))

    def _content(self, path: str) -> bytes | None:
        for mount_point, files in self._mounts.items():
            inside = path[len(mount_point) + 1 :]
            if path.startswith(f"{mount_point}/") and inside in files:
                return files[inside]
        return None if self._is_mounted(path) else self._files.get(path)

    def _is_mounted(self, path: str) -> bool:
        return any(path == mount_point or path.startswith(f"{mount_point}/") for mount_point in self._mounts)

    def _all(self) -> set[str]:
        mounted = {f"{mount_point}/{name}" for mount_point, files in self._mounts.items() for name in files}
        return {*self._files, *self._folders, *mounted, *self._mounts}

    def _put(self, path: str, content: bytes) -> None:
        old = self._files.get(path)
        self._size += len(content) - len(old) if old is not None else _FILE_BYTES + len(content)
        self._files[path] = content

    def _check_space(self, more: int) -> None:
        if self._size + more > _MAX_BYTES:
            raise OSError("No space left on device")

    def _add_folder(self, path: str) -> None:
        while path not in self._folders:
            self._folders.add(path)
            self._size += _FILE_BYTES
            path = posixpath.dirname(path)


def absolute(base: str, path: str) -> str:
    """The absolute path of `path` relative to `base`."""
    return posixpath.normpath(posixpath.join(base, path)).replace("//", "/")
