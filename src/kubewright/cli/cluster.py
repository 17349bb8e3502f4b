"""`kubewright cluster`: run a local control plane and find it again.

A thin skin over `kubewright.cluster.keeper`, `state` and `binaries`. Standard output carries only what a
script wants (`eval "$(kubewright cluster up --real --detach)"`), everything for people goes to standard
error.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubewright.cluster.state import Record, State, state_folder
from kubewright.errors import ClusterError

if TYPE_CHECKING:
    from kubewright.cluster.binaries import Binaries

__all__ = ("cluster",)

_name = click.option("--name", default="default", show_default=True, help="The cluster's name.")
_version = click.option("--version", metavar="VERSION", help="Kubernetes version, as 1.35 or 1.35.4.")


@click.group()
def cluster() -> None:
    """Run a local Kubernetes control plane."""


@cluster.command()
@click.option("--real", is_flag=True, help="Run etcd, kube-apiserver and kube-controller-manager.")
@_version
@_name
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the cluster's data in this folder; without it, all is gone when the cluster stops.",
)
@click.option("--detach/--foreground", help="Leave it running in the background, or stay until Ctrl-C (default).")
def up(*, real: bool, version: str | None, name: str, data: Path | None, detach: bool) -> None:
    """Start a control plane and print the line that points kubectl at it."""
    from kubewright.cluster import keeper

    if not real:
        raise click.UsageError("Only a real control plane can be started so far; add --real.")
    begun = time.monotonic()
    state = State(state_folder())
    keeper.check_free(state, name)  # before a build that may take minutes
    found = _find(version)
    plan = keeper.Plan(
        name=name,
        state=str(state.folder),
        version=found.version,
        data=None if data is None else str(data.expanduser().absolute()),
    )
    announce = _announcer(begun, stop=f"`{_down(name)}`" if detach else "Ctrl-C")
    if detach:
        announce(keeper.detach(plan))
    else:
        asyncio.run(keeper.keep(plan, ready=announce))


@cluster.command()
@_name
def down(*, name: str) -> None:
    """Stop a control plane that runs in the background or in another terminal."""
    from kubewright.cluster import keeper

    record = State(state_folder()).running(name)
    if record is None:
        click.echo(f"No cluster named {name} is running.", err=True)
        return
    keeper.stop(record)
    click.echo(f"The cluster {name} has stopped.", err=True)


@cluster.command()
@click.option("--name", help="Only this cluster; exit code 1 if it is not running.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
def status(*, name: str | None, output: str) -> None:
    """Show the control planes that are running."""
    import msgspec

    state = State(state_folder())
    records = state.all_running() if name is None else [_running(state, name)]
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(records), indent=2))
    elif not records:
        click.echo("No cluster is running.", err=True)
    for record in records if output == "text" else ():
        processes = ", ".join(f"{component} {pid}" for component, pid in record.processes.items())
        click.echo(f"{record.name}  Kubernetes {record.version}  {record.url}  {record.kubeconfig}  ({processes})")


@cluster.command()
@_name
@click.option("--path", is_flag=True, help="Print where the file is rather than what is in it.")
def kubeconfig(*, name: str, path: bool) -> None:
    """Print the admin kubeconfig of a running control plane."""
    record = _running(State(state_folder()), name)
    if path:
        click.echo(record.kubeconfig)
        return
    try:
        click.echo(Path(record.kubeconfig).read_text(encoding="utf-8"), nl=False)
    except OSError as error:
        raise ClusterError(
            f"The kubeconfig of the cluster {name} cannot be read ({error}); restart the cluster."
        ) from error


@cluster.command()
@_version
@click.option("--or-say-why", is_flag=True, help="Where they cannot be had, say why in one line and succeed.")
def binaries(*, version: str | None, or_say_why: bool) -> None:
    """Get etcd, kube-apiserver, kube-controller-manager and kubectl ready, and print where they are."""
    try:
        found = _find(version)
    except ClusterError as error:
        if not or_say_why:
            raise
        click.echo(" ".join(str(error).split()), err=True)
        return
    for path in (found.etcd, found.kube_apiserver, found.kube_controller_manager, found.kubectl):
        click.echo(path)


def _find(version: str | None) -> Binaries:
    """In the main thread and before any event loop, so that Ctrl-C ends a build at once."""
    from kubewright.cli.progress import display
    from kubewright.cluster.binaries import find

    with display() as progress:
        return find(version, progress=progress)


def _announcer(begun: float, *, stop: str) -> Callable[[Record], None]:
    def announce(record: Record) -> None:
        took = time.monotonic() - begun
        click.echo(
            f"Kubernetes {record.version} is ready at {record.url} after {took:.1f} s. {stop} stops it.", err=True
        )
        click.echo(f"export KUBECONFIG={shlex.quote(record.kubeconfig)}")

    return announce


def _running(state: State, name: str) -> Record:
    record = state.running(name)
    if record is None:
        option = "" if name == "default" else f" --name {name}"
        raise ClusterError(
            f"No cluster named {name} is running; start one with `kubewright cluster up --real{option}`."
        )
    return record


def _down(name: str) -> str:
    return "kubewright cluster down" + ("" if name == "default" else f" --name {name}")
