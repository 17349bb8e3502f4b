"""Brings a folder from the last rendering to the new one and keeps the user's edits.

`.kubewright/rendered.json` holds the last rendering, so that adding a kind, editing the project and updating it to
newer templates are one operation: a three-way merge for each file. Everything is planned before anything is written; a
plan with conflicts is refused while the folder is unchanged.

Where `kubewright edit` and the user changed the same lines, nobody has to choose: what was asked for goes into files
that have to agree with PROJECT, and everything else stays as the user wrote it. The plan names the lines.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, Literal, final

import msgspec

from kubewright.errors import ConfigError
from kubewright.scaffold.layout import render_project
from kubewright.scaffold.project import FILE, Project
from kubewright.scaffold.three_way_merge import merge

__all__ = ("RENDERED", "Plan", "last_rendered", "plan", "write")

RENDERED: Final = ".kubewright/rendered.json"
_LISTS: Final = ("kustomization.yaml", "pyproject.toml")
"""Files in which lines that both sides added at one place do not contradict each other."""
_PROSE: Final = "README.md"
"""Nothing depends on it, so what its author wrote is never an obstacle."""
_SETTINGS: Final = ("pyproject.toml", "config/default/", "config/manager/")
"""Files that say what PROJECT says: if they contradict it, the operator is not the one that it describes."""


@final
class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The files to write, and the obstacles."""

    writes: dict[str, str]
    """Path -> text, for files that are new or change."""
    conflicts: tuple[str, ...] = ()
    """Files in which the user and the templates changed the same lines; the text has both between markers."""
    existing: tuple[str, ...] = ()
    """Files of the user that a new file would overwrite."""
    missing: tuple[str, ...] = ()
    """Files that would change, but the user has removed them; they are not written."""
    removes: tuple[str, ...] = ()
    """Unedited files that no template makes any more."""
    left_over: tuple[str, ...] = ()
    """Edited files that no template makes any more; the user has to decide."""
    kept: dict[str, tuple[str, ...]] = {}
    """Files in which the user's lines stay, and the lines that the templates have instead."""
    replaced: dict[str, tuple[str, ...]] = {}
    """Files that have to agree with PROJECT, and the lines of the user that were replaced there."""


def last_rendered(folder: Path) -> dict[str, str]:
    """The last rendering; empty in a new project."""
    file = folder / RENDERED
    try:
        rendered = msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}; restore it from version control") from None
    # What no template makes any more is removed, so a path in this file must not lead to somebody else's.
    for path in rendered:
        if "\\" in path or any(part in ("", ".", "..") for part in path.split("/")):
            raise ConfigError(f"{file} has {path!r}, which leads outside of {folder}; restore it from version control")
    return rendered


def plan(
    folder: Path, project: Project, *, replace: Collection[str] = (), before: Project | None = None, mark: bool = False
) -> Plan:
    """How to bring the folder to that project; files in `replace` are overwritten, edited or not.

    `before` is the project whose options are edited. With `mark` every conflict is one, to be marked in the files.
    """
    base, new = last_rendered(folder), render_project(project)
    former = {} if before is None else render_project(before)
    writes: dict[str, str] = {}
    kept: dict[str, tuple[str, ...]] = {}
    replaced: dict[str, tuple[str, ...]] = {}
    conflicts, existing, missing = [], [], []
    for path, text in new.items():
        current = _text(folder / path)
        if current == text:
            continue
        if path in replace or (current is None and path not in base):
            writes[path] = text
        elif path not in base:
            existing.append(path)
        elif current is None:
            missing += [path] if base[path] != text else []
        else:
            prefer = None if mark else _preferred(path, project, base[path], former.get(path))
            merged = merge(base[path], current, text, both=path.endswith(_LISTS), prefer=prefer)
            if merged.text != current:
                writes[path] = merged.text
            conflicts += [path] if merged.conflicts else []
            if merged.dropped:
                (kept if prefer == "mine" else replaced)[path] = merged.dropped
    own = {FILE: project.dump(), RENDERED: _rendered_json(new)}
    writes |= {path: text for path, text in own.items() if _text(folder / path) != text}
    gone = {path: _text(folder / path) for path in sorted(base.keys() - new.keys())}
    return Plan(
        writes=writes,
        conflicts=tuple(conflicts),
        existing=tuple(existing),
        missing=tuple(missing),
        removes=tuple(path for path, text in gone.items() if text == base[path]),
        left_over=tuple(path for path, text in gone.items() if text not in (None, base[path])),
        kept=kept,
        replaced=replaced,
    )


def _preferred(path: str, project: Project, base: str, former: str | None) -> Literal["mine", "new"] | None:
    """Whose lines are taken where both sides changed the same ones; None if only the user can tell.

    `former` is what these templates make of the project before it is edited. Where `base` is different, the templates
    have changed, too, and what was asked for cannot be told from that.
    """
    if former is None:
        return "mine" if path == _PROSE else None
    if path.startswith(_SETTINGS) or path == f"{project.package}/__main__.py":
        return "new" if base == former else None
    return "mine"


def write(folder: Path, planned: Plan) -> None:
    """Write the files of a plan, each atomically, and remove others."""
    try:
        for path, text in planned.writes.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            temporary = file.with_name(f".{file.name}.new")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(file)
        for path in planned.removes:
            (folder / path).unlink(missing_ok=True)
            _remove_empty_folders(folder, (folder / path).parent)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error}") from error


def _remove_empty_folders(root: Path, folder: Path) -> None:
    """Remove folders below the root that are empty, or have nothing but `__pycache__`."""
    while folder != root and all(item.name == "__pycache__" for item in folder.iterdir()):
        shutil.rmtree(folder)
        folder = folder.parent


def _rendered_json(files: Mapping[str, str]) -> str:
    return json.dumps(files, indent=1, sort_keys=True) + "\n"


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None
