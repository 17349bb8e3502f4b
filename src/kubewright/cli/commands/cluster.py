"""`kubewright cluster`: run a local control plane, and stop or inspect it.

A thin layer over `kubewright.cluster.planes` and `kubewright.cluster.binaries`. Standard output has only what a script
needs (`eval "$(kubewright cluster up --real --detach)"`); messages for people go to standard error.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import msgspec

from kubewright.cli.confirmation import confirm, require_terminal, yes_option
from kubewright.cli.contexts import merge_context
from kubewright.cli.reports import print_json, with_json_output
from kubewright.cli.tables import print_table
from kubewright.cli.targets import port_option
from kubewright.cluster.planes.state import ClusterRecord, StateFolder, state_folder
from kubewright.errors import ClusterError

if TYPE_CHECKING:
    from kubewright.cluster.binaries.finder import Binaries

__all__ = ("cluster",)

_name = click.option("--name", default="default", show_default=True, help="The cluster's name.")
_version = click.option("--version", metavar="VERSION", help="Kubernetes version: MAJOR.MINOR or MAJOR.MINOR.PATCH.")


class _Process(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    pid: int


class _Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A running cluster, as `-o json` prints it."""

    name: str
    type: Literal["embedded", "real"]
    version: str
    """Of Kubernetes."""
    url: str
    kubeconfig: str
    folder: str
    data: str | None
    """The folder that keeps its objects."""
    ready_at: datetime | None
    pid: int
    """The process that runs it."""
    processes: tuple[_Process, ...]
    """Of its components."""


def _status_of(record: ClusterRecord) -> _Status:
    return _Status(
        name=record.name,
        type=record.type,
        version=record.version,
        url=record.url,
        kubeconfig=record.kubeconfig,
        folder=record.folder,
        data=record.data,
        ready_at=record.ready_at,
        pid=record.pid,
        processes=tuple(_Process(name=name, pid=pid) for name, pid in record.processes.items()),
    )


_output_option = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print it."
)  # fmt: skip


@click.group()
def cluster() -> None:
    """Run a local Kubernetes control plane."""


@cluster.command(short_help="Start a control plane.")
@click.option("--embedded/--real", default=True, help="Kubewright's own control plane (default), or Kubernetes' own.")
@_version
@_name
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the cluster's data in this folder; without it, all is gone when the cluster stops.",
)
@port_option
@click.option("--nodes", default=1, show_default=True, metavar="N", help="How many nodes to simulate.")
@click.option("--pods/--no-pods", default=True, help="Let pods run on simulated nodes, or leave them pending.")
@click.option("--audit-log", type=click.Path(dir_okay=False, path_type=Path), help="One JSON line per request.")
@click.option("--detach/--foreground", help="Leave it running in the background, or stay until Ctrl-C (default).")
@_output_option
def up(
    *,
    embedded: bool,
    version: str | None,
    name: str,
    data: Path | None,
    port: int,
    nodes: int,
    pods: bool,
    audit_log: Path | None,
    detach: bool,
    output: str,
) -> None:
    """Start a control plane and print the line that points kubectl at it."""
    from kubewright._base.loop import run
    from kubewright.cluster.planes import background

    if embedded and version is not None:
        raise click.UsageError("--version chooses a real control plane; add --real.")
    begun = time.monotonic()
    state = StateFolder(state_folder())
    background.check_name_free(state, name)  # before a build that may take minutes
    plan = background.ClusterOptions(
        name=name,
        state=str(state.folder),
        real=not embedded,
        version=None if embedded else _find(version).version,
        data=_absolute(data),
        port=port,
        nodes=nodes,
        pods=pods,
        audit_log=_absolute(audit_log),
    )
    announce = _announcer(begun, stop=f"`{_down(name)}`" if detach else "Ctrl-C", output_format=output)
    if detach:
        announce(background.start_in_background(plan))
    else:
        run(background.run_cluster(plan, ready=announce))


def _absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.expanduser().absolute())


@cluster.command(short_help="Stop a control plane.")
@_name
@with_json_output
def down(*, name: str) -> dict[str, object]:
    """Stop a control plane that runs in the background or in another terminal."""
    from kubewright.cluster.planes import background

    record = StateFolder(state_folder()).find_running(name)
    if record is None:
        click.echo(f"No cluster named {name} is running.", err=True)
        return {"name": name, "stopped": False}
    background.stop_cluster(record)
    click.echo(f"The cluster {name} has stopped.", err=True)
    return {"name": name, "stopped": True}


@cluster.command()
@click.option("--name", help="Only this cluster; exit code 1 if it is not running.")
@_output_option
def status(*, name: str | None, output: str) -> None:
    """Show the control planes that are running."""
    state = StateFolder(state_folder())
    records = state.list_running() if name is None else [_running(state, name)]
    if output == "json":
        print_json([_status_of(record) for record in records])
    elif not records:
        click.echo("No cluster is running.", err=True)
    else:
        header = ("NAME", "TYPE", "KUBERNETES", "ADDRESS", "KUBECONFIG", "PROCESSES")
        print_table(header, [_row(record) for record in records])


def _row(record: ClusterRecord) -> tuple[str, ...]:
    processes = ", ".join(f"{component} {pid}" for component, pid in record.processes.items())
    return record.name, record.type, record.version, record.url, record.kubeconfig, processes


@cluster.command()
@_name
@click.option("--path", is_flag=True, help="Print where the file is rather than what is in it.")
@click.option("--merge", is_flag=True, help="Add it to your own kubeconfig and make it the current context.")
def kubeconfig(*, name: str, path: bool, merge: bool) -> None:
    """Print the admin kubeconfig of a running control plane."""
    record = _running(StateFolder(state_folder()), name)
    if path:
        click.echo(record.kubeconfig)
        return
    if merge:
        target, context = merge_context(Path(record.kubeconfig), cluster=record.name)
        click.echo(f"{target} has the context {context} now, and uses it.", err=True)
        return
    try:
        click.echo(Path(record.kubeconfig).read_text(encoding="utf-8"), nl=False)
    except OSError as error:
        raise ClusterError(
            f"The kubeconfig of the cluster {name} cannot be read ({error}); restart the cluster."
        ) from error


@cluster.command(short_help="Delete the data of a stopped cluster.")
@_name
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The data folder the cluster was started with.",
)
@yes_option
def reset(*, name: str, data: Path, yes: bool) -> None:
    """Delete the data of a stopped cluster from its data folder: the next start is a new one."""
    import shutil

    if StateFolder(state_folder()).find_running(name) is not None:
        raise ClusterError(f"The cluster {name} is running; stop it first with `{_down(name)}`.")
    found = [path for path in (data / "store", data / "etcd", data / "pki") if path.exists()]
    if not found:
        click.echo(f"{data} holds nothing of a cluster.", err=True)
        return
    require_terminal(yes=yes)
    confirm([str(path) for path in found], yes=yes)
    for path in found:
        shutil.rmtree(path)
    click.echo(f"{data} is empty again.", err=True)


@cluster.command(short_help="Get the programs of a real control plane ready.")
@_version
@click.option("--or-say-why", is_flag=True, help="If they are not available, say why in one line and succeed.")
@_output_option
def binaries(*, version: str | None, or_say_why: bool, output: str) -> None:
    """Get etcd, kube-apiserver, kube-controller-manager and kubectl ready, and print where they are."""
    try:
        found = _find(version)
    except ClusterError as error:
        if not or_say_why:
            raise
        click.echo(" ".join(str(error).split()), err=True)
        return
    paths = {
        "etcd": found.etcd,
        "kube-apiserver": found.kube_apiserver,
        "kube-controller-manager": found.kube_controller_manager,
        "kubectl": found.kubectl,
    }
    if output == "json":
        listed = [{"name": name, "path": str(path)} for name, path in paths.items()]
        print_json({"version": found.version, "binaries": listed})
        return
    for path in paths.values():
        click.echo(path)


def _find(version: str | None) -> Binaries:
    """In the main thread and before any event loop, so that Ctrl-C ends a build at once."""
    from kubewright.cli.progress import display
    from kubewright.cluster.binaries.finder import find

    with display() as progress:
        return find(version, progress=progress)


def _announcer(begun: float, *, stop: str, output_format: str) -> Callable[[ClusterRecord], None]:
    def announce(record: ClusterRecord) -> None:
        took = time.monotonic() - begun
        click.echo(
            f"Kubernetes {record.version} is ready at {record.url} after {took:.1f} s. {stop} stops it.", err=True
        )
        if output_format == "json":
            print_json(_status_of(record))
        else:
            click.echo(f"export KUBECONFIG={shlex.quote(record.kubeconfig)}")

    return announce


def _running(state: StateFolder, name: str) -> ClusterRecord:
    record = state.find_running(name)
    if record is None:
        option = "" if name == "default" else f" --name {name}"
        raise ClusterError(f"No cluster named {name} is running; start one with `kubewright cluster up{option}`.")
    return record


def _down(name: str) -> str:
    return "kubewright cluster down" + ("" if name == "default" else f" --name {name}")
