"""`kubewright init`: start a new project in this folder."""

from __future__ import annotations

import re
from pathlib import Path

import click

from kubewright.cli.flags import NAMES, yes_or_no
from kubewright.cli.kubebuilder import INIT, CommandOfKubebuilder
from kubewright.cli.projects import ProjectChanges, apply_project
from kubewright.cli.reports import with_json_output
from kubewright.errors import ConfigError
from kubewright.scaffold.project import FILE, Project

__all__ = ("init",)


@click.command(cls=CommandOfKubebuilder, answers=INIT)
@click.option("--domain", required=True, help="Your domain; API groups end with it.")
@click.option("--project-name", metavar="NAME", help="The project's name; the folder's if not given.")
@click.option("--owner", default="", help="Whom the project belongs to.")
@click.option("--namespace", default="", help="Where the operator is to run; <name>-system if not given.")
@yes_or_no("--namespaced", default=False, text="The operator works only in its own namespace.")
@click.option("--namespaces", type=NAMES, default="", help="The operator works only in these namespaces.")
@click.option("--force", is_flag=True, help="Overwrite files that are in the way.")
@with_json_output
def init(
    *,
    domain: str,
    project_name: str | None,
    owner: str,
    namespace: str,
    namespaced: bool,
    namespaces: tuple[str, ...],
    force: bool,
) -> ProjectChanges:
    """Start a project in this folder."""
    folder = Path()
    if (folder / FILE).exists():
        raise ConfigError(
            f"there is a project in {folder.absolute()} already; add to it with `kubewright create`, "
            "or change it with `kubewright edit`"
        )
    name = project_name or re.sub(r"[_ .]+", "-", folder.absolute().name.lower())
    project = Project.new(
        name=name, domain=domain, owner=owner, namespace=namespace, namespaced=namespaced, namespaces=namespaces
    )
    done = apply_project(folder, project, force=force)
    click.echo("Next: kubewright create api --group GROUP --version v1alpha1 --kind KIND", err=True)
    return done
