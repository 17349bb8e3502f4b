"""`kubewright create`: add a kind or a webhook to the project in this folder.

Flags may be written as kubebuilder's: `--resource`, `--resource=false`. On a terminal, what is not said about them is
asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kubewright.cli.flags import yes_or_no
from kubewright.cli.projects import Done, carry_out
from kubewright.cli.reports import reported
from kubewright.errors import ConfigError
from kubewright.scaffold.layout import files_of_kind
from kubewright.scaffold.project import Kind, Project, load_project
from kubewright.scaffold.steps import add_api, add_webhook, builtin_kind

__all__ = ("create",)

F = TypeVar("F", bound=Callable[..., Any])


def _about_a_kind(command: F) -> F:
    """The options that name a kind."""
    for option in (
        click.option("--force", is_flag=True, help="Write files again that are there."),
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


@create.command()
@_about_a_kind
@click.option("--plural", default="", help="The plural, where English is not enough.")
@yes_or_no("--namespaced", default=True, text="Objects live in namespaces (default), or --namespaced=false.")
@yes_or_no("--resource", default=None, text="Write a class for the kind; not for those of Kubernetes.")
@yes_or_no("--controller", default=None, text="Write a controller for the kind.")
@reported
def api(
    *,
    group: str,
    version: str,
    kind: str,
    force: bool,
    plural: str,
    namespaced: bool,
    resource: bool | None,
    controller: bool | None,
) -> Done:
    """Add a kind: its class, a sample, a controller and a test.

    For a kind that Kubernetes has, such as apps/v1 Deployment, only the controller.
    """
    folder = Path()
    project = load_project(folder)
    if resource is None and builtin_kind(group, version, kind) is None:
        resource = _ask("Create the resource?")
        if not resource:
            raise ConfigError("a kind that Kubernetes does not have needs its resource; nothing was written")
    if controller is None:
        controller = _ask("Create the controller?") and not _has_controller(project, group, kind)
    changed = add_api(
        project,
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=namespaced,
        resource=resource,
        controller=controller,
        again=force,
    )
    done = _apply(folder, changed, (group, version, kind), force=force)
    if not resource and builtin_kind(group, version, kind) is not None:
        _say_whose(project, group, version, kind)
    click.echo(
        "Next: put what it is about into the new files, then `kubewright generate` and `kubewright dev`", err=True
    )
    return done


@create.command(short_help="Add webhooks for a kind.")
@_about_a_kind
@click.option("--defaulting", is_flag=True, help="Fill in values.")
@click.option("--validation", "--programmatic-validation", is_flag=True, help="Refuse objects.")
@click.option("--conversion", is_flag=True, help="Convert between this version and the others.")
@click.option("--operations", default="", metavar="LIST", help="When it is asked: create,update (default), delete.")
@reported
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
) -> Done:
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
        again=force,
    )
    return _apply(folder, changed, (group, version, kind), force=force)


def _apply(folder: Path, project: Project, about: tuple[str, str, str], *, force: bool) -> Done:
    entry = _entry(project, *about)
    return carry_out(folder, project, replace=files_of_kind(project, entry) if force else (), force=force)


def _entry(project: Project, group: str, version: str, kind: str) -> Kind:
    found = project.find(group, version, kind)
    if found is None:
        builtin = builtin_kind(group, version, kind)
        assert builtin is not None, "a step has added it"
        found = project.find(builtin.group, version, kind)
    assert found is not None
    return found


def _say_whose(project: Project, group: str, version: str, kind: str) -> None:
    """Who means a kind of their own does not notice from the files alone that another was taken."""
    click.echo(
        f"{group}/{version} {kind} is a kind of Kubernetes, so there is a controller for it and no class; for a "
        f"kind of your own, {group}.{project.domain}/{version} {kind}, say --resource",
        err=True,
    )


def _has_controller(project: Project, group: str, kind: str) -> bool:
    return any(entry.controller and (entry.group, entry.kind) == (group, kind) for entry in project.resources)


def _ask(question: str) -> bool:
    """Yes where nobody can be asked."""
    return click.confirm(question, default=True, err=True) if sys.stdin.isatty() else True
