"""Generated files and a folder: write the files that differ, or list them.

Only generated files are changed; other files in the folder stay, and no path leads out of it. Shared by every
generator with a `--check`.
"""

from __future__ import annotations

import difflib
import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kubewright.errors import ConfigError

__all__ = ("differences", "write_files")

_MAX_DIFF_LINES: Final = 200


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write the files that are missing or differ; returns their paths within the folder."""
    _check_paths(folder, files)
    changed = [path for path, content in sorted(files.items()) if not _same(folder / path, content)]
    try:
        for path in changed:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(files[path])
    except OSError as exc:
        raise ConfigError(f"{folder} cannot be written: {exc}") from exc
    return changed


def differences(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """One text per file that is missing or differs, with a diff if it is text; empty if all are up to date."""
    _check_paths(folder, files)
    return [
        _difference(folder / path, content)
        for path, content in sorted(files.items())
        if not _same(folder / path, content)
    ]


def _check_paths(folder: Path, paths: Iterable[str]) -> None:
    """Names of groups and kinds are part of the paths, and they can be a stranger's."""
    for path in paths:
        parts = path.split("/")
        if "\\" in path or "\0" in path or not all(part not in ("", ".", "..") for part in parts):
            raise ConfigError(f"{path!r} leads outside of {folder}; the file is not written, correct the name")


def _same(file: Path, content: bytes) -> bool:
    present = _current(file)
    if present is None or present == content:
        return present is not None
    # Other zlib versions compress the same content to other bytes.
    return file.suffix == ".gz" and _decompress(present) == gzip.decompress(content)


def _decompress(content: bytes) -> bytes | None:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError):
        return None


def _current(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise ConfigError(f"{file} cannot be read: {exc}") from exc


def _difference(file: Path, content: bytes) -> str:
    present = _current(file)
    if present is None:
        return f"{file} is missing"
    if file.suffix == ".gz":
        return f"{file} differs"
    diff = list(
        difflib.unified_diff(
            present.decode(errors="replace").splitlines(),
            content.decode(errors="replace").splitlines(),
            f"{file} (now)",
            f"{file} (generated)",
            lineterm="",
        )
    )
    more = len(diff) - _MAX_DIFF_LINES
    return "\n".join([*diff[:_MAX_DIFF_LINES], *([f"... and {more} lines more"] if more > 0 else [])])
