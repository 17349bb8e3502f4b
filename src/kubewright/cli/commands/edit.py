"""`kubewright edit`: change what was said at `init`; the files follow, around your edits.

The domain and the project's name stay: they are part of the names of everything in clusters, and of every import.
"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from kubewright.cli.flags import yes_or_no
from kubewright.cli.projects import Done, carry_out
from kubewright.cli.reports import reported
from kubewright.scaffold.project import load_project

__all__ = ("edit",)


@click.command()
@click.option("--owner", help="Whom the project belongs to.")
@click.option("--namespace", help="Where the operator is to run.")
@yes_or_no("--namespaced", default=None, text="It works in its own namespace alone, or --namespaced=false.")
@click.option("--force", is_flag=True, help="Where your edits are in the way, write both between markers.")
@reported
def edit(*, owner: str | None, namespace: str | None, namespaced: bool | None, force: bool) -> Done:
    """Change the project's owner, the operator's namespace, or whether it works there alone."""
    asked = {"owner": owner, "namespace": namespace, "namespaced": namespaced}
    given = {name: value for name, value in asked.items() if value is not None}
    if not given:
        raise click.UsageError("What is to change? Give --owner, --namespace or --namespaced.")
    folder = Path()
    project = msgspec.structs.replace(load_project(folder), **given).checked()
    return carry_out(folder, project, force=force)
