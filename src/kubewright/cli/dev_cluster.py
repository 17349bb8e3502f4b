"""dev_cluster(): the embedded cluster of `kubewright dev`, with the same kubeconfig path at each start.

It is a named cluster like those of `kubewright cluster up`: `cluster status` lists it, and `cluster kubeconfig` prints
its kubeconfig. The name follows from the operator's; a second session for the same operator has a temporary folder.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubewright.cli.contexts import merge_context

if TYPE_CHECKING:
    from kubewright.cluster.planes.embedded import EmbeddedCluster
    from kubewright.cluster.planes.state import StateFolder

__all__ = ("cluster_name", "dev_cluster")

_LONGEST = 63


def cluster_name(package: str) -> str:
    """The name of the cluster for an operator's package: dev-shop-operator for shop_operator."""
    words = re.sub("[^a-z0-9]+", "-", package.lower()).strip("-")
    return f"dev-{words}"[:_LONGEST].strip("-")


@asynccontextmanager
async def dev_cluster(
    package: str, *, port: int = 0, data: Path | None = None, merge: bool = False
) -> AsyncIterator[EmbeddedCluster]:
    """Run the cluster, say how to use it, and add it to the user's kubeconfig if it is to be merged.

    Its objects are kept in `data`; without it they are gone with the cluster.
    """
    from kubewright.cluster.planes.background import record_of
    from kubewright.cluster.planes.embedded import EmbeddedCluster
    from kubewright.cluster.planes.state import StateFolder, state_folder

    name = cluster_name(package)
    state = StateFolder(state_folder())
    with _own_name(state, name) as ours:
        folder = state.cluster_folder(name) if ours else None
        async with EmbeddedCluster(folder=folder, data=data, port=port) as cluster:
            if ours:
                state.write(record_of(cluster, name=name, data=data))
            click.echo(f"An embedded cluster is ready at {cluster.url}. Ctrl-C stops it.", err=True)
            click.echo(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")
            if merge:
                target, context = merge_context(cluster.kubeconfig, cluster=name)
                click.echo(f"{target} has the context {context} now, and uses it.", err=True)
            yield cluster


@contextmanager
def _own_name(state: StateFolder, name: str) -> Iterator[bool]:
    """Hold the name for the length of the block; False if it cannot be had."""
    from kubewright.cluster.processes.locks import FileLock

    lock = FileLock(state.lock_file(name))
    try:
        ours = lock.try_acquire()
        reason = "" if ours else f"a cluster named {name} is running already"
    except OSError as error:
        ours, reason = False, str(error)
    if not ours:
        click.secho(f"the kubeconfig is in a temporary folder: {reason}", fg="yellow", err=True)
    with lock:
        try:
            yield ours
        finally:
            if ours:
                state.remove(name)
                shutil.rmtree(state.cluster_folder(name), ignore_errors=True)
