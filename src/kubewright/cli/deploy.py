"""`kubewright deploy` and `undeploy`: everything `config/default` is made of, in and out of a cluster.

kustomize, by way of kubectl, says what that is; the rest is server-side apply from here: namespaces and CRDs first,
webhook configurations last, and back in reverse.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kubewright.cli.clusters import for_cluster, found_config
from kubewright.cli.progress import display
from kubewright.errors import ClusterError, ConfigError, NotFound

if TYPE_CHECKING:
    from kubewright.api.dynamic import DynamicObject
    from kubewright.client.client import Client
    from kubewright.client.config import Config

__all__ = ("deploy", "undeploy")

Tree = dict[str, Any]
_MANAGER: Final = "kubewright-deploy"
_FIRST: Final = ("Namespace", "CustomResourceDefinition", "ServiceAccount", "Role", "ClusterRole")
_LAST: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_folder = click.option(
    "--overlay", type=click.Path(path_type=Path), default="config/default", show_default=True, help="What to deploy."
)


@click.command()
@for_cluster
@_folder
@click.option("--image", default="", help="The operator's image; else as config/manager says.")
@click.option("--timeout", default=120.0, show_default=True, metavar="SECONDS", help="How long it may take to start.")
@click.option("--no-wait", is_flag=True, help="Do not wait until the operator is available.")
@click.option("--dry-run", is_flag=True, help="Let the server check everything and keep nothing.")
def deploy(
    *,
    kubeconfig: str | None,
    context: str | None,
    overlay: Path,
    image: str,
    timeout: float,
    no_wait: bool,
    dry_run: bool,
) -> None:
    """Deploy the operator; returns when it is available."""
    trees = _built(overlay)
    if image:
        _set_image(trees, image)
    config = found_config(kubeconfig, context)
    asyncio.run(_deploy(config, trees, timeout=0 if no_wait or dry_run else timeout, dry_run=dry_run))
    words = "could be applied to" if dry_run else "applied to"
    click.echo(f"{len(trees)} objects {words} {config.server}.", err=True)


@click.command()
@for_cluster
@_folder
@click.option("--keep-crds", is_flag=True, help="Leave the CRDs, and with them the objects of their kinds.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def undeploy(*, kubeconfig: str | None, context: str | None, overlay: Path, keep_crds: bool, yes: bool) -> None:
    """Remove the operator and everything that was deployed with it."""
    trees = [tree for tree in _built(overlay) if not (keep_crds and tree["kind"] == "CustomResourceDefinition")]
    config = found_config(kubeconfig, context)
    if not yes and sys.stdin.isatty():
        click.confirm(f"Delete {len(trees)} objects on {config.server}?", abort=True, err=True)
    gone = asyncio.run(_undeploy(config, trees))
    click.echo(f"{gone} objects deleted on {config.server}.", err=True)


def _built(overlay: Path) -> list[Tree]:
    """The objects of an overlay, in the order in which they are to be applied."""
    from kubewright._base import yaml

    if not (overlay / "kustomization.yaml").is_file():
        raise ConfigError(f"{overlay} has no kustomization.yaml; go to the project's folder, or name it with --overlay")
    command = [_kubectl(), "kustomize", str(overlay)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - kubectl, on our own folder
    if done.returncode:
        raise ConfigError(f"{overlay} cannot be built: {done.stderr.strip()}")
    return sorted(yaml.load_all(done.stdout), key=_rank)


def _kubectl() -> str:
    from kubewright.cluster.binaries import at_hand

    if found := shutil.which("kubectl"):
        return found
    try:
        return str(at_hand().kubectl)
    except ClusterError:
        raise ConfigError("kubectl is needed to build the overlay and is not on the PATH; install it") from None


def _rank(tree: Tree) -> int:
    kind = tree["kind"]
    if kind in _FIRST:
        return _FIRST.index(kind)
    return len(_FIRST) + 1 + _LAST.index(kind) if kind in _LAST else len(_FIRST)


def _set_image(trees: list[Tree], image: str) -> None:
    for tree in trees:
        if tree["kind"] == "Deployment":
            for container in tree["spec"]["template"]["spec"]["containers"]:
                if container["name"] == "manager":
                    container["image"] = image
                    return
    raise ConfigError("no Deployment has a container named manager, so there is no place for --image")


def _object(tree: Tree) -> DynamicObject:
    from kubewright.api.codec import from_tree
    from kubewright.api.dynamic import Dynamic

    return from_tree(Dynamic(tree["apiVersion"], tree["kind"]), tree)


async def _deploy(config: Config, trees: list[Tree], *, timeout: float, dry_run: bool) -> None:
    from kubewright.client.connect import connect
    from kubewright.cluster.install import install_crds

    async with connect(config, field_manager=_MANAGER) as client:
        with display() as progress:
            for done, tree in enumerate(trees):
                progress("applying", done, len(trees))
                if tree["kind"] == "CustomResourceDefinition" and not dry_run:
                    await install_crds(client, tree)
                else:
                    await client.apply(_object(tree), force=True, dry_run=dry_run)
            for tree in trees if timeout else ():
                if tree["kind"] == "Deployment":
                    progress(f"waiting for {tree['metadata']['name']}")
                    await _until_available(client, tree["metadata"], timeout)


async def _until_available(client: Client, metadata: Tree, timeout: float) -> None:
    from kubewright.k8s.apps.v1 import Deployment

    namespace, name = metadata["namespace"], metadata["name"]
    told = "nothing is known of its pods"
    try:
        async with (
            asyncio.timeout(timeout),
            client.watch(
                Deployment, namespace=namespace, fields={"metadata.name": name}, initial_events=True
            ) as events,
        ):
            async for event in events:
                status = event.object.status
                if (status.observed_generation or 0) < (event.object.metadata.generation or 0):
                    continue
                for condition in status.conditions or ():
                    told = condition.message or told
                    if condition.type == "Available" and condition.status == "True":
                        return
    except TimeoutError:
        raise ClusterError(
            f"{name} is not available after {timeout:g} s: {told}; see kubectl --namespace {namespace} describe pods"
        ) from None


async def _undeploy(config: Config, trees: list[Tree]) -> int:
    from kubewright.client.connect import connect

    gone = 0
    async with connect(config) as client:
        with display() as progress:
            for done, tree in enumerate(reversed(trees)):
                progress("deleting", done, len(trees))
                wanted = _object(tree)
                try:
                    await client.delete(type(wanted), wanted.key, propagation="Background")
                except NotFound:
                    continue
                gone += 1
    return gone
