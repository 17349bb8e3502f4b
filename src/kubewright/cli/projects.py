"""Applies a changed project to its folder: write the planned files, then the generated manifests.

All or nothing: if the manifests cannot be generated, because the code cannot be imported or a type has no schema, the
folder is restored. `init`, `create`, `edit` and `update` call it.
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

__all__ = ("ProjectChanges", "apply_project", "write_manifests")


@final
class ProjectChanges(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The files of a project that were changed, by their paths within it."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()
    """Generated manifests."""
    missing: tuple[str, ...] = ()
    """Files that would have changed, but the user has removed them."""
    removed: tuple[str, ...] = ()
    """Files that no template makes any more."""
    left_over: tuple[str, ...] = ()
    """Edited files that no template makes any more; they were kept."""
    kept: tuple[str, ...] = ()
    """Files in which edits are where lines would have changed; the edits stay."""


def apply_project(
    folder: Path,
    project: Project,
    *,
    replace: Collection[str] = (),
    force: bool = False,
    manifests: bool = True,
    edited: Project | None = None,
) -> ProjectChanges:
    """Bring a folder to the state of the project; returns the files that changed.

    `edited` is the project before its options changed: then edits are no obstacle, as `scaffold.changes` says.
    """
    planned = plan(folder, project, replace=replace, before=edited, mark=force)
    if not force:
        _refuse(planned)
    elif planned.existing:
        planned = plan(folder, project, replace={*replace, *planned.existing}, mark=True)
    before = {path: _bytes(folder / path) for path in (*planned.writes, *planned.removes)}
    write(folder, planned)
    generated = [] if planned.conflicts or not manifests else _manifests_or_undo(folder, before)
    touched = [path for path in planned.writes if path not in (FILE, RENDERED)]
    for path in touched:
        _print_step("created" if before[path] is None else "changed", path)
    for path in planned.removes:
        _print_step("removed", path)
    for path in planned.missing:
        _print_step("left out", f"{path}, which you have removed")
    for path in planned.left_over:
        _print_step(
            "left over", f"{path}: no template makes it any more; move your edits to where they belong and delete it"
        )
    for path, lines in planned.kept.items():
        _print_step("kept", f"{path} as you wrote it; a new project has there: {' | '.join(lines)}")
    for path, lines in planned.replaced.items():
        _print_step("replaced", f"{' | '.join(lines)} in {path}")
    for path in planned.conflicts:
        _print_step("conflict", f"{path}: choose between the lines that <<<<<<< and >>>>>>> mark")
    if planned.conflicts:
        raise ConfigError(
            f"{len(planned.conflicts)} files have conflicts; resolve them, then run `kubewright generate`"
        )
    for path in generated:
        _print_step("generated", path)
    return ProjectChanges(
        created=tuple(path for path in touched if before[path] is None),
        changed=tuple(path for path in touched if before[path] is not None),
        generated=tuple(generated),
        missing=planned.missing,
        removed=planned.removes,
        left_over=planned.left_over,
        kept=tuple(planned.kept),
    )


def write_manifests(folder: Path) -> list[str]:
    """Run `kubewright generate`; returns the paths of files that changed."""
    from kubewright.generate.project import write_project
    from kubewright.manager.operator import load_operator

    done = write_project(load_operator(str(folder)), folder / "config")
    for path in done.removed:
        _print_step("removed", f"config/{path}")
    return [f"config/{path}" for path in done.changed]


def _manifests_or_undo(folder: Path, before: Mapping[str, bytes | None]) -> list[str]:
    """The manifests; if they cannot be generated, restore the folder and raise."""
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
            if place == folder or not _is_empty(place):
                break
            shutil.rmtree(place)


def _is_empty(folder: Path) -> bool:
    """Whether a folder has nothing but `__pycache__`."""
    return all(item.name == "__pycache__" for item in folder.iterdir())


def _bytes(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _refuse(planned: Plan) -> None:
    if planned.existing:
        raise ConfigError(
            f"{', '.join(planned.existing)} would be overwritten, so nothing was written; move it away, or use --force"
        )
    if planned.conflicts:
        raise ConfigError(
            f"{', '.join(planned.conflicts)} has edits of yours in lines that are to change, so nothing was written; "
            "use --force to get both versions between markers"
        )


def _print_step(what: str, path: str) -> None:
    click.echo(f"{click.style(f'{what:>9}', fg=_COLOURS[what])}  {path}", err=True)


_COLOURS = {
    "created": "green",
    "changed": "yellow",
    "removed": "yellow",
    "generated": "cyan",
    "left out": "magenta",
    "left over": "magenta",
    "kept": "magenta",
    "replaced": "yellow",
    "conflict": "red",
}
