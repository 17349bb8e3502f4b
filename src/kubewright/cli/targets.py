"""The options that choose an operator and a cluster, shared by the commands."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from kubewright.client.config.config import Config
    from kubewright.manager.operator import Operator

__all__ = ("cluster_options", "find_operator", "load_config", "operator_argument", "port_option")

F = TypeVar("F", bound=Callable[..., Any])


def port_option(command: F) -> F:
    """The option for the port of the embedded API server."""
    return click.option(
        "--port",
        default=0,
        type=click.IntRange(0, 65535),
        metavar="N",
        help="Where the embedded API server listens; any free port by default.",
    )(command)


def cluster_options(command: F) -> F:
    """The options that choose a cluster."""
    command = click.option("--context", metavar="NAME", help="The context of the kubeconfig.")(command)
    return click.option("--kubeconfig", metavar="FILE", help="The kubeconfig; else as kubectl finds it.")(command)


def operator_argument(command: Callable[..., object]) -> Callable[..., None]:
    """The argument that chooses an operator, and the option that does the same."""

    @click.argument("file", metavar="[FILE]", required=False)
    @click.option("--operator", metavar="PACKAGE", help="The operator's package or its path; the same as FILE.")
    @functools.wraps(command)
    def run(*, file: str | None, operator: str | None, **arguments: Any) -> None:
        if file and operator:
            raise click.UsageError("FILE and --operator mean the same; leave one of them out.")
        command(operator=file or operator, **arguments)

    return run


def load_config(kubeconfig: str | None, context: str | None) -> Config:
    """The configuration of the chosen cluster."""
    from kubewright.client.config.config import Config
    from kubewright.errors import ConfigError

    try:
        return Config.load(kubeconfig=kubeconfig, context=context)
    except ConfigError as error:
        if kubeconfig is None and not any(file.exists() for file in _kubeconfigs()):
            raise ConfigError(f"{error}, or start a cluster here with `kubewright cluster up`") from None
        raise


def _kubeconfigs() -> list[Path]:
    """The kubeconfigs to look for if none is named."""
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return named or [Path("~/.kube/config").expanduser()]


def find_operator(name: str | None) -> Operator:
    """The chosen operator, or the one in this folder."""
    from kubewright.errors import ConfigError
    from kubewright.manager.operator import load_operator, project_settings

    name = name or project_settings(Path()).operator
    if not name:
        raise ConfigError(
            "there is no operator here; go to the project's folder, or name the operator's file or package"
        )
    return load_operator(name)
