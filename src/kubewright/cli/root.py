"""The tree of commands. A command is a line here; its module is imported when it is called.

That keeps `kubewright --help` quick, whatever the commands import.
"""

from __future__ import annotations

import importlib
from typing import final

import click

from kubewright._base.version import __version__
from kubewright.cli.kubebuilder import answer_to

__all__ = ("root",)

# Command: its module, which has it under its own name, and its line in the help.
_COMMANDS = {
    "cluster": ("kubewright.cli.commands.cluster", "Run a local Kubernetes control plane."),
    "completion": ("kubewright.cli.commands.completion", "Print the completion script of a shell."),
    "create": ("kubewright.cli.commands.create", "Add a kind or a webhook to the project."),
    "deploy": ("kubewright.cli.commands.deploy", "Deploy the operator into a cluster."),
    "dev": ("kubewright.cli.commands.dev", "Run the operator on an embedded cluster, and again after each change."),
    "doctor": ("kubewright.cli.commands.doctor", "Check the project and the cluster."),
    "edit": ("kubewright.cli.commands.edit", "Change the options of init."),
    "generate": ("kubewright.cli.commands.generate", "Generate manifests and classes."),
    "init": ("kubewright.cli.commands.init", "Start a project in this folder."),
    "install": ("kubewright.cli.commands.install", "Install the CRDs of the operator."),
    "run": ("kubewright.cli.commands.run", "Run the operator here, against a cluster or on one of its own."),
    "tree": ("kubewright.cli.commands.tree", "Show an object and what it owns."),
    "undeploy": ("kubewright.cli.commands.deploy", "Remove the operator and what was deployed with it."),
    "uninstall": ("kubewright.cli.commands.install", "Remove the CRDs of the operator."),
    "update": ("kubewright.cli.commands.update", "Bring the project to the templates of this version."),
    "version": ("kubewright.cli.commands.version", "Print the versions here and in the cluster."),
}


@final
class _LazyGroup(click.Group):
    """A group that knows its commands by name and loads one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(_COMMANDS[cmd_name][0])
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if answer := answer_to(args):
            raise click.UsageError(answer, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in sorted(_COMMANDS)])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="kubewright %(version)s")
def root() -> None:
    """Kubernetes operators in Python.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted. Messages for people go to standard error; with
    -o json a command prints its result to standard output, for programs.
    """
