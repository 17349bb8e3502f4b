"""`kubewright edit`: change what was said at `init`; the files follow, around your edits."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from kubewright.cli.projects import carry_out
from kubewright.scaffold.project import load_project

__all__ = ("edit",)


@click.command()
@click.option("--owner", help="Whom the project belongs to.")
@click.option("--namespace", help="Where the operator is to run.")
@click.option("--force", is_flag=True, help="Where your edits are in the way, write both between markers.")
def edit(*, owner: str | None, namespace: str | None, force: bool) -> None:
    """Change the project's owner or the operator's namespace."""
    given = {name: value for name, value in (("owner", owner), ("namespace", namespace)) if value is not None}
    if not given:
        raise click.UsageError("What is to change? Give --owner or --namespace.")
    folder = Path()
    project = msgspec.structs.replace(load_project(folder), **given).checked()
    carry_out(folder, project, force=force)
