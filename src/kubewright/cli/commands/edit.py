"""`kubewright edit`: change the options of `init` and render the files again, merged with the user's edits.

The domain and the project's name cannot change: they are part of the names of all objects in clusters, and of every
import.
"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from kubewright.cli.flags import NAMES, yes_or_no
from kubewright.cli.kubebuilder import EDIT, CommandOfKubebuilder
from kubewright.cli.projects import ProjectChanges, apply_project
from kubewright.cli.reports import with_json_output
from kubewright.scaffold.project import load_project

__all__ = ("edit",)


@click.command(cls=CommandOfKubebuilder, answers=EDIT)
@click.option("--owner", help="Whom the project belongs to.")
@click.option("--namespace", help="Where the operator is to run.")
@yes_or_no("--namespaced", default=None, text="The operator works only in its own namespace, or --namespaced=false.")
@click.option("--namespaces", type=NAMES, help="The operator works only in these namespaces; empty for no such limit.")
@click.option("--force", is_flag=True, help="Where your edits are in the way, write both between markers.")
@with_json_output
def edit(
    *,
    owner: str | None,
    namespace: str | None,
    namespaced: bool | None,
    namespaces: tuple[str, ...] | None,
    force: bool,
) -> ProjectChanges:
    """Change the project's owner, the operator's namespace, or the namespaces that it works in.

    Your edits stay. What you ask for goes into the settings of the project (pyproject.toml, config/default and
    config/manager) even if you had changed those very lines: then the old ones are printed.
    """
    options = {"owner": owner, "namespace": namespace, "namespaced": namespaced, "namespaces": namespaces}
    given = {name: value for name, value in options.items() if value is not None}
    if not given:
        raise click.UsageError("What is to change? Give --owner, --namespace, --namespaced or --namespaces.")
    folder = Path()
    before = load_project(folder)
    project = msgspec.structs.replace(before, **given).validated()
    return apply_project(folder, project, force=force, edited=before)
