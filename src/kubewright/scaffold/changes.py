"""From what was rendered last to what is rendered now, around the user's edits.

`.kubewright/rendered.json` keeps what was rendered last, so that adding a kind, editing the project and updating it to
newer templates are one operation: a merge of three texts for each file. Everything is planned before anything is
written; a plan that would hurt is refused while the folder is untouched.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, final

import msgspec

from kubewright.errors import ConfigError
from kubewright.scaffold.layout import render_project
from kubewright.scaffold.merging import merge
from kubewright.scaffold.project import FILE, Project

__all__ = ("RENDERED", "Plan", "plan", "rendered", "write")

RENDERED: Final = ".kubewright/rendered.json"


@final
class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written, and what stands against it."""

    writes: dict[str, str]
    """Path -> text, for files that are new or change."""
    conflicts: tuple[str, ...] = ()
    """Files in which the user and the templates changed the same lines; the text has both between markers."""
    taken: tuple[str, ...] = ()
    """Files that are in the way of new ones."""
    missing: tuple[str, ...] = ()
    """Files that would change, had the user not removed them; they stay away."""
    removes: tuple[str, ...] = ()
    """Files that are as they were rendered and that no template makes any more."""
    left_over: tuple[str, ...] = ()
    """The same, but with edits of the user, who has to say what becomes of them."""


def rendered(folder: Path) -> dict[str, str]:
    """What was rendered last; nothing in a new project."""
    file = folder / RENDERED
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}; restore it from version control") from None


def plan(folder: Path, project: Project, *, replace: Collection[str] = ()) -> Plan:
    """How the folder gets to be that project; files in `replace` are written as they are rendered, edited or not."""
    base, new = rendered(folder), render_project(project)
    writes: dict[str, str] = {}
    conflicts, taken, missing = [], [], []
    for path, text in new.items():
        present = _text(folder / path)
        if present == text:
            continue
        if path in replace or (present is None and path not in base):
            writes[path] = text
        elif path not in base:
            taken.append(path)
        elif present is None:
            missing += [path] if base[path] != text else []
        else:
            merged = merge(base[path], present, text, both=path.endswith("kustomization.yaml"))
            if merged.text != present:
                writes[path] = merged.text
            conflicts += [path] if merged.conflicts else []
    own = {FILE: project.dump(), RENDERED: _base(new)}
    writes |= {path: text for path, text in own.items() if _text(folder / path) != text}
    former = {path: _text(folder / path) for path in sorted(base.keys() - new.keys())}
    return Plan(
        writes=writes,
        conflicts=tuple(conflicts),
        taken=tuple(taken),
        missing=tuple(missing),
        removes=tuple(path for path, text in former.items() if text == base[path]),
        left_over=tuple(path for path, text in former.items() if text not in (None, base[path])),
    )


def write(folder: Path, planned: Plan) -> None:
    """Write the files of a plan, and remove some; each is either written whole or not at all."""
    try:
        for path, text in planned.writes.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            beside = file.with_name(f".{file.name}.new")
            beside.write_text(text, encoding="utf-8")
            beside.replace(file)
        for path in planned.removes:
            (folder / path).unlink(missing_ok=True)
            _drop_empty(folder, (folder / path).parent)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error}") from error


def _drop_empty(root: Path, folder: Path) -> None:
    """Folders below the root in which nothing is left, or only what importing them has left."""
    while folder != root and all(item.name == "__pycache__" for item in folder.iterdir()):
        shutil.rmtree(folder)
        folder = folder.parent


def _base(files: Mapping[str, str]) -> str:
    return json.dumps(files, indent=1, sort_keys=True) + "\n"


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None
