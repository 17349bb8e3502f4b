"""`kubewright install` and `uninstall`: the CRDs of the operator's kinds.

Those of a project are what `config/crd` builds, so that what its kustomization adds or patches counts, and generated
files that are stale are refused; those of a single file come from its classes. An existing conversion webhook is not
changed; else the deployed operator's Service is named, and until it runs the server rejects conversions rather than
returning objects unconverted. `uninstall` asks, removes webhooks that nobody serves any more, since they would refuse
the deletions, deletes the objects, and their CRDs once they are gone, and at last the webhook configurations that the
operator itself has registered.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubewright.cli.confirmation import confirm, require_terminal, yes_option
from kubewright.cli.custom_objects import CustomKind, custom_kinds, delete_crd, delete_objects, describe
from kubewright.cli.definitions import CRD, check_generated, definitions_of
from kubewright.cli.overlays import object_of
from kubewright.cli.progress import display
from kubewright.cli.registered_webhooks import registered_webhooks, remove_dead_webhooks, remove_webhooks
from kubewright.cli.reports import with_json_output
from kubewright.cli.targets import cluster_options, find_operator, load_config, operator_argument
from kubewright.errors import ConfigError

if TYPE_CHECKING:
    from kubewright.api.dynamic import DynamicObject
    from kubewright.cli.overlays import Tree
    from kubewright.client.config.config import Config
    from kubewright.manager.operator import Operator

__all__ = ("install", "uninstall")


@click.command()
@operator_argument
@cluster_options
@click.option("--timeout", default=30.0, show_default=True, metavar="SECONDS", help="How long a CRD may take.")
@with_json_output
def install(*, operator: str | None, kubeconfig: str | None, context: str | None, timeout: float) -> dict[str, Any]:
    """Install the CRDs of the operator; returns when the cluster serves their kinds.

    Those of a project are what config/crd builds, with your patches.
    """
    found = find_operator(operator)
    folder = None if operator else Path()
    trees = definitions_of(found, folder)
    if not trees and not found.by_crd:
        raise ConfigError("the operator has no kinds of its own; add one with `kubewright create api`")
    if folder is not None and (folder / "config/crd").is_dir():
        check_generated(found, folder, "crds")
    config = load_config(kubeconfig, context)
    asyncio.run(_install(config, trees, timeout))
    names = [tree["metadata"]["name"] for tree in trees if tree["kind"] == CRD]
    for name in names:
        click.echo(f"{name} is established on {config.server}.", err=True)
    return {"server": config.server, "installed": names}


@click.command()
@operator_argument
@cluster_options
@click.option(
    "--timeout", default=60.0, show_default=True, metavar="SECONDS",
    help="How long the objects may take to go, and then each CRD.",
)  # fmt: skip
@yes_option
@with_json_output
def uninstall(
    *, operator: str | None, kubeconfig: str | None, context: str | None, timeout: float, yes: bool
) -> dict[str, Any]:
    """Remove the CRDs of the operator, and with them every object of its kinds, and the webhooks it has registered.

    It asks first; where there is no terminal, it does nothing without --yes. Objects with a finalizer go only while the
    operator runs.
    """
    require_terminal(yes=yes)
    operator_found = find_operator(operator)
    config = load_config(kubeconfig, context)
    found, lines = asyncio.run(_look(config, operator_found))
    if lines:
        confirm([*lines, f"on {config.server}"], yes=yes)
    webhooks = asyncio.run(_uninstall(config, operator_found, found, timeout))
    gone = [*webhooks, *(item.crd for item in found)]
    for name in gone:
        click.echo(f"{name} is deleted.", err=True)
    return {"server": config.server, "removed": [item.crd for item in found], "webhooks": webhooks}


async def _install(config: Config, trees: list[Tree], timeout: float) -> None:
    from kubewright.client.connection import connect
    from kubewright.cluster.install import CRD as DEFINITION
    from kubewright.cluster.install import install_crds

    async with connect(config) as client:
        with display() as progress:
            for done, tree in enumerate(trees):
                progress("installing CRDs", done, len(trees))
                if tree["kind"] != CRD:
                    await client.apply(object_of(tree), force=True)
                    continue
                current = await client.find(DEFINITION, tree["metadata"]["name"])
                await install_crds(client, _with_conversion(tree, current), timeout=timeout)


def _with_conversion(crd: Tree, current: DynamicObject | None) -> Tree:
    """The CRD with the conversion webhook that it has on the server already, if it has one.

    It is applied as it is: left out, it would be removed, as what this command has applied before.
    """
    if "conversion" not in crd["spec"] or current is None or current.get("spec.conversion.strategy") != "Webhook":
        return crd
    return {**crd, "spec": {**crd["spec"], "conversion": current["spec"]["conversion"]}}


async def _look(config: Config, operator: Operator) -> tuple[list[CustomKind], list[str]]:
    """The CRDs that the cluster has, and a line about each, and about each webhook configuration."""
    from kubewright.client.connection import connect

    async with connect(config) as client:
        found = await custom_kinds(client, list(operator.by_crd))
        webhooks = [f"{obj.kind} {obj.metadata.name}" for obj in await registered_webhooks(client, operator.name)]
        return found, [*await describe(client, found), *webhooks]


async def _uninstall(config: Config, operator: Operator, kinds: list[CustomKind], timeout: float) -> list[str]:
    """Remove everything; returns the names of the webhook configurations that were there."""
    from kubewright.client.connection import connect

    async with connect(config) as client:
        removed = await remove_dead_webhooks(client, operator)
        with display() as progress:
            progress("deleting objects")
            await delete_objects(client, kinds, timeout=timeout)
            for done, item in enumerate(kinds):
                progress("removing CRDs", done, len(kinds))
                await delete_crd(client, item.crd, timeout=timeout)
        return [*removed, *await remove_webhooks(client, operator.name)]
