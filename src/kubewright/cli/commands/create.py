"""`kubewright create`: add a kind or a webhook to the project in this folder.

Flags may be written as kubebuilder's: `--resource`, `--resource=false`. On a terminal, flags that are not given are
asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kubewright.cli.flags import yes_or_no
from kubewright.cli.kubebuilder import CREATE_API, CREATE_WEBHOOK, CommandOfKubebuilder
from kubewright.cli.projects import ProjectChanges, apply_project
from kubewright.cli.reports import with_json_output
from kubewright.errors import ConfigError
from kubewright.scaffold.additions import add_api, add_webhook, builtin_kind
from kubewright.scaffold.layout import files_of_kind
from kubewright.scaffold.project import Kind, Project, load_project

__all__ = ("create",)

F = TypeVar("F", bound=Callable[..., Any])


def _kind_options(command: F) -> F:
    """The options that name a kind."""
    for option in (
        click.option("--force", is_flag=True, help="Overwrite existing files."),
        click.option("--kind", required=True, help="The kind, such as PodSet."),
        click.option("--version", required=True, help="Its version, such as v1alpha1."),
        click.option(
            "--group", required=True, help="Its group without the domain; or one of Kubernetes, such as core."
        ),
    ):
        command = option(command)
    return command


@click.group()
def create() -> None:
    """Add a kind or a webhook to the project."""


@create.command(cls=CommandOfKubebuilder, answers=CREATE_API)
@_kind_options
@click.option("--plural", default="", help="The plural name, if it is irregular.")
@yes_or_no("--namespaced", default=None, text="The kind is namespaced (default), or --namespaced=false.")
@yes_or_no("--resource", default=None, text="Write a class for the kind; not for those of Kubernetes.")
@yes_or_no("--controller", default=None, text="Write a controller for the kind.")
@with_json_output
def api(
    *,
    group: str,
    version: str,
    kind: str,
    force: bool,
    plural: str,
    namespaced: bool | None,
    resource: bool | None,
    controller: bool | None,
) -> ProjectChanges:
    """Add a kind: its class, a sample, a controller and a test.

    For a kind that Kubernetes has, such as apps/v1 Deployment, only the controller.
    """
    folder = Path()
    project = load_project(folder)
    if resource is None and builtin_kind(group, version, kind) is None:
        resource = _ask("Create the resource?")
        if not resource:
            raise ConfigError("a kind that Kubernetes does not have needs its resource; nothing was written")
    if controller is None and not _ask("Create the controller?"):
        controller = False
    changed = add_api(
        project,
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=namespaced,
        resource=resource,
        controller=controller,
        overwrite=force,
    )
    done = _apply(folder, changed, (group, version, kind), force=force)
    if not resource and builtin_kind(group, version, kind) is not None:
        _explain_builtin(project, group, version, kind)
    click.echo("Next: edit the new files, then run `kubewright generate` and `kubewright dev`", err=True)
    return done


@create.command(cls=CommandOfKubebuilder, answers=CREATE_WEBHOOK, short_help="Add webhooks for a kind.")
@_kind_options
@click.option("--defaulting", is_flag=True, help="Fill in values.")
@click.option("--validation", "--programmatic-validation", is_flag=True, help="Validate objects.")
@click.option("--conversion", is_flag=True, help="Convert between this version and the others.")
@click.option("--operations", default="", metavar="LIST", help="The operations: create,update (default), delete.")
@with_json_output
def webhook(
    *,
    group: str,
    version: str,
    kind: str,
    force: bool,
    defaulting: bool,
    validation: bool,
    conversion: bool,
    operations: str,
) -> ProjectChanges:
    """Add webhooks for a kind of the project, or of Kubernetes, such as core/v1 Pod."""
    folder = Path()
    changed = add_webhook(
        load_project(folder),
        group=group,
        version=version,
        kind=kind,
        defaulting=defaulting,
        validation=validation,
        conversion=conversion,
        operations=[word.strip().lower() for word in operations.split(",") if word.strip()],
        overwrite=force,
    )
    return _apply(folder, changed, (group, version, kind), force=force)


def _apply(folder: Path, project: Project, about: tuple[str, str, str], *, force: bool) -> ProjectChanges:
    entry = _entry(project, *about)
    return apply_project(folder, project, replace=files_of_kind(project, entry) if force else (), force=force)


def _entry(project: Project, group: str, version: str, kind: str) -> Kind:
    found = project.find(group, version, kind)
    if found is None:
        builtin = builtin_kind(group, version, kind)
        assert builtin is not None, "a step has added it"
        found = project.find(builtin.group, version, kind)
    assert found is not None
    return found


def _explain_builtin(project: Project, group: str, version: str, kind: str) -> None:
    """Say that a built-in kind was used: a user who wants a kind of their own does not see it from the files."""
    click.echo(
        f"{group}/{version} {kind} is a kind of Kubernetes, so it gets a controller and no class; for a "
        f"kind of your own, {group}.{project.domain}/{version} {kind}, add --resource --force",
        err=True,
    )


def _ask(question: str) -> bool:
    """Ask on a terminal; elsewhere the answer is yes."""
    return click.confirm(question, default=True, err=True) if sys.stdin.isatty() else True
