"""`kubewright update`: render the project with the templates of this version, merged with the user's edits."""

from __future__ import annotations

from pathlib import Path

import click

from kubewright._base.version import __version__
from kubewright.cli.projects import ProjectChanges, apply_project
from kubewright.cli.reports import with_json_output
from kubewright.errors import ConfigError
from kubewright.scaffold.changes import RENDERED, last_rendered, plan
from kubewright.scaffold.project import load_project

__all__ = ("update",)


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; fail if the project is not up to date.")
@with_json_output
def update(*, check: bool) -> ProjectChanges:
    """Bring the project's files to the templates of this version, around your edits.

    Where both changed the same lines, both stay between markers, and the command fails. A file that no template makes
    any more is removed, unless you have edited it: then it is named.
    """
    folder = Path()
    project = load_project(folder)
    if not last_rendered(folder):
        raise ConfigError(
            f"{RENDERED} is missing, so your edits cannot be distinguished from the templates; "
            "restore it from version control"
        )
    planned = plan(folder, project)
    if not planned.writes:
        click.echo(f"The project is up to date with Kubewright {__version__}.", err=True)
        return ProjectChanges()
    if check:
        paths = ", ".join((*planned.writes, *planned.removes))
        raise click.ClickException(f"{paths} would change; run the command without --check.")
    if planned.existing:
        raise ConfigError(f"{', '.join(planned.existing)} would be overwritten; move it away, then update again")
    done = apply_project(folder, project, force=True, manifests=False)
    click.echo("Now run `kubewright generate` and the tests.", err=True)
    return done
