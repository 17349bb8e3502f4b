"""The namespaces that an operator works in, where it is run for its author: what is missing is made or said.

An operator that works in some namespaces sees nothing elsewhere, and of nothing there is no log. So `run` and `dev` say
where it works; on a cluster of their own they make the namespaces, on others they name those that do not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from kubewright.errors import ApiError, NotFound

if TYPE_CHECKING:
    from kubewright.api.resource import KubeObject
    from kubewright.client.client import Client
    from kubewright.manager.operator import Operator
    from kubewright.manager.options import ManagerOptions

__all__ = ("create_namespaces", "place_sample", "print_missing_namespaces", "print_namespaces", "watched_by")


def watched_by(operator: Operator, options: ManagerOptions) -> tuple[str, ...]:
    """The namespaces that a manager with these options watches; empty for all."""
    return options.watch_namespaces or operator.watched_namespaces(options.namespace)


def print_namespaces(watched: Sequence[str]) -> None:
    """Say where it works, if that is not everywhere."""
    if watched:
        noun = "namespace" if len(watched) == 1 else "namespaces"
        click.echo(f"It works in the {noun} {', '.join(watched)} alone; objects elsewhere are nothing to it.", err=True)


async def create_namespaces(client: Client, watched: Sequence[str]) -> None:
    """Make those that do not exist."""
    from kubewright.k8s.core.v1 import Namespace

    for name in watched:
        await client.apply(Namespace.named(name), force=True)


async def print_missing_namespaces(client: Client, watched: Sequence[str]) -> None:
    """Name those that do not exist, as far as one may know."""
    from kubewright.k8s.core.v1 import Namespace

    for name in watched:
        try:
            await client.get(Namespace, name)
        except NotFound:
            click.echo(
                f"The namespace {name} does not exist, so nothing happens there; `kubectl create namespace {name}` "
                "makes it.",
                err=True,
            )
        except ApiError:  # not allowed: then the watches will say what else is missing
            return


def place_sample(tree: dict[str, Any], kinds: Sequence[type[KubeObject]], watched: Sequence[str]) -> dict[str, Any]:
    """A sample of one of these kinds that names no namespace, in one that the operator works in."""
    metadata = tree.get("metadata") or {}
    named = (tree.get("apiVersion"), tree.get("kind"))
    placed = [kind for kind in kinds if (kind.__definition__.gvk.api_version, kind.__definition__.gvk.kind) == named]
    if not watched or metadata.get("namespace") or not any(kind.__definition__.namespaced for kind in placed):
        return tree
    return {**tree, "metadata": {**metadata, "namespace": watched[0]}}
