"""What the commands about a project share: write the plan or refuse it, then the manifests that follow from the code.

All or nothing: where the manifests cannot be made, because the code cannot be imported or a type has no schema, the
folder gets back what it had.

Used by `init`, `create`, `edit` and `update`.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import final

import click
import msgspec

from kubewright.errors import ConfigError, KubewrightError
from kubewright.scaffold.changes import RENDERED, Plan, plan, write
from kubewright.scaffold.project import FILE, Project

__all__ = ("Done", "carry_out", "write_manifests")


@final
class Done(msgspec.Struct, frozen=True, kw_only=True):
    """Which files of a project were touched, by their paths within it."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()
    """Manifests that follow from the code."""
    missing: tuple[str, ...] = ()
    """Files that would have changed, had they not been removed by hand."""
    removed: tuple[str, ...] = ()
    """Files that no template makes any more."""
    left_over: tuple[str, ...] = ()
    """The same, but kept because of edits in them."""


def carry_out(
    folder: Path,
    project: Project,
    *,
    replace: Collection[str] = (),
    force: bool = False,
    manifests: bool = True,
) -> Done:
    """Bring a folder to what the project is now, and say which files that touched."""
    planned = plan(folder, project, replace=replace)
    if not force:
        _refuse(planned)
    elif planned.taken:
        planned = plan(folder, project, replace={*replace, *planned.taken})
    before = {path: _bytes(folder / path) for path in (*planned.writes, *planned.removes)}
    write(folder, planned)
    generated = [] if planned.conflicts or not manifests else _manifests_or_undo(folder, before)
    touched = [path for path in planned.writes if path not in (FILE, RENDERED)]
    for path in touched:
        _say("created" if before[path] is None else "changed", path)
    for path in planned.removes:
        _say("removed", path)
    for path in planned.missing:
        _say("left out", f"{path}, which you have removed")
    for path in planned.left_over:
        _say("left over", f"{path}: no template makes it any more; move your edits to where they belong and delete it")
    for path in planned.conflicts:
        _say("conflict", f"{path}: choose between the lines that <<<<<<< and >>>>>>> mark")
    if planned.conflicts:
        raise ConfigError(
            f"{len(planned.conflicts)} files have conflicts; resolve them, then run `kubewright generate`"
        )
    for path in generated:
        _say("generated", path)
    return Done(
        created=tuple(path for path in touched if before[path] is None),
        changed=tuple(path for path in touched if before[path] is not None),
        generated=tuple(generated),
        missing=planned.missing,
        removed=planned.removes,
        left_over=planned.left_over,
    )


def write_manifests(folder: Path) -> list[str]:
    """What `kubewright generate` writes; the paths of files that changed."""
    from kubewright.generate.output import write_files
    from kubewright.generate.project import project_files
    from kubewright.manager.operator import load_operator

    config = folder / "config"
    return [f"config/{path}" for path in write_files(config, project_files(load_operator(str(folder)), config))]


def _manifests_or_undo(folder: Path, before: Mapping[str, bytes | None]) -> list[str]:
    """The manifests; where the project's code does not allow for them, the folder as it was and a sentence."""
    try:
        return write_manifests(folder)
    except KubewrightError as error:
        _undo(folder, before)
        raise ConfigError(f"{error}; nothing was written: correct it, then try again") from error


def _undo(folder: Path, before: Mapping[str, bytes | None]) -> None:
    for path, content in before.items():
        file = folder / path
        if content is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            continue
        file.unlink(missing_ok=True)
        for place in file.parents:
            if place == folder or not _is_bare(place):
                break
            shutil.rmtree(place)


def _is_bare(folder: Path) -> bool:
    """Whether there is nothing in a folder but what importing it has left."""
    return all(item.name == "__pycache__" for item in folder.iterdir())


def _bytes(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _refuse(planned: Plan) -> None:
    if planned.taken:
        raise ConfigError(
            f"{', '.join(planned.taken)} would be overwritten, so nothing was written; move it away, or use --force"
        )
    if planned.conflicts:
        raise ConfigError(
            f"{', '.join(planned.conflicts)} has edits of yours in lines that are to change, so nothing was written; "
            "use --force to get both versions between markers"
        )


def _say(what: str, path: str) -> None:
    click.echo(f"{click.style(f'{what:>9}', fg=_COLOURS[what])}  {path}", err=True)


_COLOURS = {
    "created": "green",
    "changed": "yellow",
    "removed": "yellow",
    "generated": "cyan",
    "left out": "magenta",
    "left over": "magenta",
    "conflict": "red",
}
