"""Which cluster a command talks to: the options every such command has, and the client they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from kubewright.client.config import Config
    from kubewright.generate.operator import Operator

__all__ = ("for_cluster", "for_operator", "found_config", "found_operator")

F = TypeVar("F", bound=Callable[..., Any])


def for_cluster(command: F) -> F:
    """The options that choose a cluster."""
    command = click.option("--context", metavar="NAME", help="The context of the kubeconfig.")(command)
    return click.option("--kubeconfig", metavar="FILE", help="The kubeconfig; else as kubectl finds it.")(command)


def for_operator(command: F) -> F:
    """The option that chooses an operator."""
    text = "The operator's package or its path; else as pyproject.toml says."
    return click.option("--operator", metavar="PACKAGE", help=text)(command)


def found_config(kubeconfig: str | None, context: str | None) -> Config:
    """The cluster that is meant."""
    from kubewright.client.config import Config

    return Config.load(kubeconfig=kubeconfig, context=context)


def found_operator(given: str | None) -> Operator:
    """The operator that is meant."""
    from pathlib import Path

    from kubewright.errors import ConfigError
    from kubewright.generate.operator import load_operator, project_settings

    name = given or project_settings(Path()).operator
    if not name:
        raise ConfigError("there is no operator here; go to the project's folder, or name its package with --operator")
    return load_operator(name)
