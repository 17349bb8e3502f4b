"""Asks before a command deletes something: a person on a terminal, or `--yes`; a script without it is refused.

A script has nobody to answer, and what its standard input holds is no answer. `uninstall`, `undeploy` and `cluster
reset` call it.
"""

from __future__ import annotations

import sys

import click

from kubewright.cli.terminals import visible
from kubewright.errors import ConfigError

__all__ = ("confirm", "require_terminal", "yes_option")

yes_option = click.option("--yes", is_flag=True, help="Do not ask. Needed where there is no terminal.")


def require_terminal(*, yes: bool) -> None:
    """Refuse, before anything else is done, where nobody can be asked."""
    if not yes and not sys.stdin.isatty():
        raise click.UsageError(
            "This deletes things and there is no terminal to ask on, so nothing was done; add --yes if it is meant."
        )


def confirm(what: list[str], *, yes: bool) -> None:
    """Say what will be deleted and ask; an error unless the answer is yes."""
    if yes:
        return
    click.echo("This deletes:", err=True)
    for line in what:
        click.echo(f"  {visible(line)}", err=True)
    if not click.confirm("Delete them, for good?", err=True):
        raise ConfigError("nothing was deleted")
