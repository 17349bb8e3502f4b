"""What the commands about a project share: write the plan or refuse it, then the manifests that follow from the code.

Used by `init`, `create`, `edit` and `update`.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import click

from kubewright.errors import ConfigError, KubewrightError
from kubewright.scaffold.changes import RENDERED, Plan, plan, write
from kubewright.scaffold.project import FILE, Project

__all__ = ("carry_out", "write_manifests")


def carry_out(
    folder: Path,
    project: Project,
    *,
    replace: Collection[str] = (),
    force: bool = False,
    manifests: bool = True,
) -> None:
    """Bring a folder to what the project is now, and say which files that touched."""
    planned = plan(folder, project, replace=replace)
    if not force:
        _refuse(planned)
    elif planned.taken:
        planned = plan(folder, project, replace={*replace, *planned.taken})
    before = {path for path in planned.writes if (folder / path).exists()}
    write(folder, planned)
    for path in planned.writes:
        if path not in (FILE, RENDERED):
            _say("changed" if path in before else "created", path)
    for path in planned.missing:
        _say("left out", f"{path}, which you have removed")
    for path in planned.conflicts:
        _say("conflict", f"{path}: choose between the lines that <<<<<<< and >>>>>>> mark")
    if planned.conflicts:
        raise ConfigError(
            f"{len(planned.conflicts)} files have conflicts; resolve them, then run `kubewright generate`"
        )
    if manifests:
        write_manifests(folder)


def write_manifests(folder: Path) -> None:
    """What `kubewright generate` writes."""
    from kubewright.generate.operator import load_operator
    from kubewright.generate.output import write_files
    from kubewright.generate.project import project_files

    config = folder / "config"
    try:
        changed = write_files(config, project_files(load_operator(str(folder)), config))
    except KubewrightError as error:
        raise ConfigError(
            f"the files are written, but the manifests cannot be: {error}; correct it, then run `kubewright generate`"
        ) from error
    for path in changed:
        _say("generated", f"config/{path}")


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


_COLOURS = {"created": "green", "changed": "yellow", "generated": "cyan", "left out": "magenta", "conflict": "red"}
