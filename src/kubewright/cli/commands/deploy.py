"""`kubewright deploy` and `undeploy`: apply everything in `config/default` to a cluster, and delete it.

`kubectl kustomize` builds the objects, as `cli.overlays` says; generated files that are not what the code says are
refused. Server-side apply writes them: namespaces and CRDs first, webhook configurations last, and deletes in reverse.
Roles in other namespaces than the operator's, those in `config/rbac/other_namespaces`, are applied and deleted with it.
`undeploy` asks, and deletes the objects of the operator's kinds while the operator still runs: nobody else takes its
finalizers away.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kubewright.cli.confirmation import confirm, require_terminal, yes_option
from kubewright.cli.custom_objects import (
    CustomKind,
    custom_kinds,
    delete_crd,
    delete_objects,
    describe,
    finalizers_left,
)
from kubewright.cli.definitions import CRD, check_generated
from kubewright.cli.overlays import LIST, Tree, build_overlay, object_of
from kubewright.cli.progress import display
from kubewright.cli.reports import with_json_output
from kubewright.cli.targets import cluster_options, find_operator, load_config
from kubewright.cli.terminals import visible
from kubewright.errors import ApiError, ClusterError, ConfigError, Forbidden, NotFound

if TYPE_CHECKING:
    from kubewright.client.client import Client
    from kubewright.client.config.config import Config

__all__ = ("deploy", "undeploy")

_MANAGER: Final = "kubewright-deploy"
_SIMULATED: Final = "simulation.kubewright.io/node"
"""The annotation of simulated nodes."""
_WORKLOADS: Final = ("DaemonSet", "Deployment")
_FIRST: Final = ("Namespace", "CustomResourceDefinition", "ServiceAccount", "Role", "ClusterRole")
_LAST: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_folder = click.option(
    "--overlay", type=click.Path(path_type=Path), default="config/default", show_default=True, help="What to deploy."
)
_other_namespaces = click.option(
    "--other-namespaces", type=click.Path(path_type=Path), default="config/rbac/other_namespaces", show_default=True,
    help="Roles in other namespaces, if there are any.",
)  # fmt: skip


@click.command()
@cluster_options
@_folder
@_other_namespaces
@click.option("--image", default="", help="The operator's image; else as config/manager says.")
@click.option("--timeout", default=120.0, show_default=True, metavar="SECONDS", help="How long it may take to start.")
@click.option("--no-wait", is_flag=True, help="Do not wait until the operator is available.")
@click.option("--allow-stale", is_flag=True, help="Deploy generated files even if they are not what the code says.")
@click.option("--dry-run", is_flag=True, help="Let the server check everything and keep nothing.")
@click.option("--print", "show", is_flag=True, help="Print it as YAML, to be applied by somebody else; ask no cluster.")
@with_json_output
def deploy(
    *,
    kubeconfig: str | None,
    context: str | None,
    overlay: Path,
    other_namespaces: Path,
    image: str,
    timeout: float,
    no_wait: bool,
    allow_stale: bool,
    dry_run: bool,
    show: bool,
) -> dict[str, Any] | None:
    """Deploy the operator; returns when it is available."""
    from kubewright._base import yaml

    if not allow_stale:
        _check_generated(overlay)
    trees = _build_overlay(overlay, other_namespaces)
    if image:
        _set_image(trees, image)
    if show:
        click.echo(yaml.dump_all(trees), nl=False)
        return None
    config = load_config(kubeconfig, context)
    simulated = asyncio.run(_deploy(config, trees, timeout=0 if no_wait or dry_run else timeout, dry_run=dry_run))
    words = "would be accepted" if dry_run else "applied"
    click.echo(f"{len(trees)} objects {words} on {config.server}.", err=True)
    if simulated and any(tree["kind"] in _WORKLOADS for tree in trees):
        click.echo(_simulated_sentence(trees), err=True)
    applied = [_identify(tree) for tree in trees]
    return {"server": config.server, "dryRun": dry_run, "simulated": simulated, "applied": applied}


@click.command()
@cluster_options
@_folder
@_other_namespaces
@click.option("--keep-crds", is_flag=True, help="Leave the CRDs, and with them all objects of the operator's kinds.")
@click.option(
    "--timeout", default=60.0, show_default=True, metavar="SECONDS",
    help="How long the objects of the operator's kinds may take to go, and then each CRD.",
)  # fmt: skip
@yes_option
@with_json_output
def undeploy(
    *,
    kubeconfig: str | None,
    context: str | None,
    overlay: Path,
    other_namespaces: Path,
    keep_crds: bool,
    timeout: float,
    yes: bool,
) -> dict[str, Any]:
    """Remove the operator, its CRDs with all objects of their kinds, and all else that was deployed with it.

    It asks first; where there is no terminal, it does nothing without --yes. The objects go first, while the operator
    can clean up after them; if one of them stays, the operator stays, too.
    """
    require_terminal(yes=yes)
    trees = _build_overlay(overlay, other_namespaces)
    names = [tree["metadata"]["name"] for tree in trees if tree["kind"] == CRD]
    trees = [tree for tree in trees if not (keep_crds and tree["kind"] == CRD)]
    config = load_config(kubeconfig, context)
    kinds, lines = asyncio.run(_look(config, names, keep=keep_crds))
    confirm([*lines, f"the {len(trees)} objects of {overlay} on {config.server}"], yes=yes)
    gone = asyncio.run(_undeploy(config, trees, [] if keep_crds else kinds, timeout=timeout))
    click.echo(f"{len(gone)} objects deleted on {config.server}.", err=True)
    return {"server": config.server, "deleted": [_identify(tree) for tree in gone]}


def _check_generated(overlay: Path) -> None:
    """If the overlay is the project's own: its generated files are what the code says."""
    folder = Path()
    if (folder / "pyproject.toml").is_file() and overlay.absolute().is_relative_to((folder / "config").absolute()):
        check_generated(find_operator(None), folder)


def _simulated_sentence(trees: list[Tree]) -> str:
    """What a person does not see from pods that are ready."""
    webhooks = any(tree["kind"] in _LAST for tree in trees)
    refused = ", nor its webhooks answered, so that what they are asked about is refused" if webhooks else ""
    return (
        "The nodes of this cluster are simulated: no container runs on them, so nothing will be reconciled by what was "
        f"deployed{refused}. `kubewright run` runs the operator here, against this cluster."
    )


def _identify(tree: Tree) -> dict[str, str]:
    """An object's apiVersion, kind, namespace and name, for the report."""
    place = {"namespace": tree["metadata"]["namespace"]} if "namespace" in tree["metadata"] else {}
    return {"apiVersion": tree["apiVersion"], "kind": tree["kind"], **place, "name": tree["metadata"]["name"]}


def _build_overlay(overlay: Path, other_namespaces: Path) -> list[Tree]:
    """The objects of an overlay, and those in other namespaces, in the order to apply them."""
    if not (overlay / LIST).is_file():
        raise ConfigError(f"{overlay} has no {LIST}; go to the project's folder, or name it with --overlay")
    trees = build_overlay(overlay)
    if (other_namespaces / LIST).is_file():
        trees += build_overlay(other_namespaces)
    return sorted(trees, key=_rank)


def _rank(tree: Tree) -> int:
    kind = tree["kind"]
    if kind in _FIRST:
        return _FIRST.index(kind)
    return len(_FIRST) + 1 + _LAST.index(kind) if kind in _LAST else len(_FIRST)


def _set_image(trees: list[Tree], image: str) -> None:
    for tree in trees:
        if tree["kind"] in _WORKLOADS:
            for container in tree["spec"]["template"]["spec"]["containers"]:
                if container["name"] == "manager":
                    container["image"] = image
                    return
    raise ConfigError("no Deployment or DaemonSet has a container named manager, so there is no place for --image")


async def _deploy(config: Config, trees: list[Tree], *, timeout: float, dry_run: bool) -> bool:
    """Apply everything and wait; returns whether the cluster's nodes are simulated."""
    from kubewright.api.names import ObjectKey
    from kubewright.cli.rollout import wait_for_rollout
    from kubewright.client.connection import connect
    from kubewright.cluster.install import install_crds

    async with connect(config, field_manager=_MANAGER) as client:
        await _check_namespaces(client, trees, dry_run=dry_run)
        with display() as progress:
            for done, tree in enumerate(trees):
                progress("applying", done, len(trees))
                if tree["kind"] == CRD and not dry_run:
                    await install_crds(client, tree)  # returns when it is served
                else:
                    await client.apply(object_of(tree), force=True, dry_run=dry_run)
            for tree in trees if timeout else ():
                if tree["kind"] in _WORKLOADS:
                    metadata = tree["metadata"]
                    progress(f"waiting for {metadata['name']}")
                    key = ObjectKey(metadata["namespace"], metadata["name"])
                    await wait_for_rollout(client, tree["kind"], key, timeout=timeout)
        return await _is_simulated(client)


async def _is_simulated(client: Client) -> bool:
    """Whether no node of the cluster runs containers."""
    from kubewright.k8s.core.v1 import Node

    try:
        nodes = await client.list(Node)
    except ApiError:  # not allowed; then it stays unsaid
        return False
    return bool(nodes.items) and all(node.metadata.annotations.get(_SIMULATED) == "true" for node in nodes)


async def _check_namespaces(client: Client, trees: list[Tree], *, dry_run: bool) -> None:
    """Before anything is applied: namespaces that are not among the objects must exist."""
    from kubewright.k8s.core.v1 import Namespace

    made = {tree["metadata"]["name"] for tree in trees if tree["kind"] == "Namespace" and not dry_run}
    for tree in trees:
        name = tree["metadata"].get("namespace", "")
        if not name or name in made:
            continue
        try:
            missing = await client.find(Namespace, name) is None
        except Forbidden:
            return  # then the apply will fail with the reason
        if missing:
            why = ", and a dry run does not make it" if dry_run else ""
            raise ClusterError(
                f"the namespace {name} of {tree['kind']} {tree['metadata']['name']} does not exist{why}; "
                f"nothing was applied: create it with `kubectl create namespace {name}`, then try again"
            )
        made.add(name)


async def _look(config: Config, names: list[str], *, keep: bool) -> tuple[list[CustomKind], list[str]]:
    """The CRDs that the cluster has, and a line about each that is to go.

    If they are kept, the lines warn of objects that nobody can delete once the operator is gone.
    """
    from kubewright.client.connection import connect

    async with connect(config) as client:
        kinds = await custom_kinds(client, names)
        if not keep:
            return kinds, await describe(client, kinds)
        left = await finalizers_left(client, kinds)
        for line in left:
            click.echo(f"{visible(line)} stays, and cannot be deleted until the operator runs again.", err=True)
        return kinds, []


async def _undeploy(config: Config, trees: list[Tree], kinds: list[CustomKind], *, timeout: float) -> list[Tree]:
    """Delete the objects; returns those that existed."""
    from kubewright.client.connection import connect

    gone = []
    async with connect(config) as client:
        with display() as progress:
            progress("deleting the objects of its kinds")
            await delete_objects(client, kinds, timeout=timeout)
            for done, tree in enumerate(reversed(trees)):
                progress("deleting", done, len(trees))
                if await _delete(client, tree, timeout=timeout):
                    gone.append(tree)
    return gone


async def _delete(client: Client, tree: Tree, *, timeout: float) -> bool:
    """Delete one object, and wait if it is a CRD; returns whether it existed."""
    if tree["kind"] == CRD:
        return await delete_crd(client, tree["metadata"]["name"], timeout=timeout)
    wanted = object_of(tree)
    try:
        await client.delete(type(wanted), wanted.key, propagation="Background")
    except NotFound:
        return False
    return True
