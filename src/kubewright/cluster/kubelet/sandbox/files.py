"""The files of a simulated container: a tree in memory that lives as long as the container runs.

What volumes bring is laid over it when somebody enters the container, and cannot be written to. Sizes are bounded:
this is for looking around and for `kubectl cp`, not for data.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Final, final

__all__ = ("Files", "absolute")

_MOST: Final = 64 * 1024 * 1024
_FOLDERS: Final = ("bin", "dev", "etc", "home", "lib", "opt", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var")


@final
class Files:
    """A tree of files, by absolute path. What cannot be done raises OSError with the words of a shell."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._folders: set[str] = {"/", *(f"/{name}" for name in _FOLDERS)}
        self._mounts: dict[str, Mapping[str, bytes]] = {}

    def mount(self, place: str, files: Mapping[str, bytes] | None) -> None:
        """Lay files over a folder; None makes an empty folder that can be written to."""
        place = absolute("/", place)
        if files is None:
            self._add_folder(place)
        else:
            self._mounts[place] = files

    def put(self, path: str, content: bytes) -> None:
        """A file that is there from the start, with its folders."""
        self._add_folder(posixpath.dirname(path))
        self._files[path] = content

    def is_folder(self, path: str) -> bool:
        return path in self._folders or any(
            path == folder or folder.startswith(path.rstrip("/") + "/") for folder in self._mounted_folders()
        )

    def is_file(self, path: str) -> bool:
        return self._found(path) is not None

    def read(self, path: str) -> bytes:
        if self.is_folder(path):
            raise OSError("Is a directory")
        found = self._found(path)
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
        if sum(map(len, self._files.values())) - len(self._files.get(path, b"")) + len(content) > _MOST:
            raise OSError("No space left on device")
        self._files[path] = content

    def make_folder(self, path: str, *, parents: bool) -> None:
        if self.is_file(path) or (self.is_folder(path) and not parents):
            raise OSError("File exists")
        if not parents and not self.is_folder(posixpath.dirname(path)):
            raise OSError("No such file or directory")
        self._add_folder(path)

    def remove(self, path: str, *, whole: bool) -> None:
        if self._is_mounted(path):
            raise OSError("Read-only file system")
        if self._files.pop(path, None) is not None:
            return
        if not self.is_folder(path):
            raise OSError("No such file or directory")
        if not whole:
            raise OSError("Is a directory")
        below = path.rstrip("/") + "/"
        self._files = {name: data for name, data in self._files.items() if not name.startswith(below)}
        self._folders = {name for name in self._folders if name != path and not name.startswith(below)} | {"/"}

    def names(self, folder: str) -> list[str]:
        """What is in a folder, sorted."""
        below = folder.rstrip("/") + "/"
        return sorted({name[len(below) :].split("/")[0] for name in self._all() if name.startswith(below)} - {""})

    def below(self, path: str) -> list[str]:
        """Every file in a folder and its folders, or the file itself."""
        if self.is_file(path):
            return [path]
        prefix = path.rstrip("/") + "/"
        return sorted(name for name in self._all() if name.startswith(prefix) and self.is_file(name))

    def _found(self, path: str) -> bytes | None:
        for place, files in self._mounts.items():
            inside = path[len(place) + 1 :]
            if path.startswith(f"{place}/") and inside in files:
                return files[inside]
        return None if self._is_mounted(path) else self._files.get(path)

    def _is_mounted(self, path: str) -> bool:
        return any(path == place or path.startswith(f"{place}/") for place in self._mounts)

    def _mounted_folders(self) -> set[str]:
        nested = {posixpath.dirname(f"{place}/{name}") for place, files in self._mounts.items() for name in files}
        return nested | set(self._mounts)

    def _all(self) -> set[str]:
        mounted = {f"{place}/{name}" for place, files in self._mounts.items() for name in files}
        return {*self._files, *self._folders, *mounted, *self._mounts}

    def _add_folder(self, path: str) -> None:
        while path not in self._folders:
            self._folders.add(path)
            path = posixpath.dirname(path)


def absolute(base: str, path: str) -> str:
    """A path as it is meant from a folder."""
    return posixpath.normpath(posixpath.join(base, path)).replace("//", "/")
