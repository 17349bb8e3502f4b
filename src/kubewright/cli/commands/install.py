"""`kubewright install` and `uninstall`: the CRDs of the operator's kinds.

They come from the classes themselves, so they are never stale. An existing conversion webhook is not changed; else the
deployed operator's Service is named, and until it runs the server rejects conversions rather than returning objects
unconverted. `uninstall` asks, removes webhooks that nobody serves any more, since they would refuse the deletions,
deletes the objects, and their CRDs once they are gone, and at last the webhook configurations that the operator itself
has registered.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from kubewright.cli.confirmation import confirm, require_terminal, yes_option
from kubewright.cli.custom_objects import CustomKind, custom_kinds, delete_crd, delete_objects, describe
from kubewright.cli.progress import display
from kubewright.cli.registered_webhooks import registered_webhooks, remove_dead_webhooks, remove_webhooks
from kubewright.cli.reports import with_json_output
from kubewright.cli.targets import cluster_options, find_operator, load_config, operator_argument
from kubewright.errors import ConfigError

if TYPE_CHECKING:
    from kubewright.api.dynamic import DynamicObject
    from kubewright.client.config.config import Config
    from kubewright.manager.operator import Operator

__all__ = ("install", "uninstall")

Tree = dict[str, Any]


@click.command()
@operator_argument
@cluster_options
@click.option("--timeout", default=30.0, show_default=True, metavar="SECONDS", help="How long a CRD may take.")
@with_json_output
def install(*, operator: str | None, kubeconfig: str | None, context: str | None, timeout: float) -> dict[str, Any]:
    """Install the CRDs of the operator; returns when the cluster serves their kinds."""
    from kubewright.generate.project import operator_crds

    found = find_operator(operator)
    crds = operator_crds(found)
    if not crds:
        raise ConfigError("the operator has no kinds of its own; add one with `kubewright create api`")
    config = load_config(kubeconfig, context)
    asyncio.run(_install(config, found, list(crds.values()), timeout))
    for name in crds:
        click.echo(f"{name} is established on {config.server}.", err=True)
    return {"server": config.server, "installed": list(crds)}


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


async def _install(config: Config, operator: Operator, crds: list[Tree], timeout: float) -> None:
    from kubewright.client.connection import connect
    from kubewright.cluster.install import CRD, install_crds

    async with connect(config) as client:
        with display() as progress:
            for done, crd in enumerate(crds):
                progress("installing CRDs", done, len(crds))
                current = await client.find(CRD, crd["metadata"]["name"])
                await install_crds(client, _with_conversion(crd, current, operator), timeout=timeout)


def _with_conversion(crd: Tree, current: DynamicObject | None, operator: Operator) -> Tree:
    """The CRD with the operator's Service as its conversion webhook, unless it has one already."""
    from kubewright.generate.webhooks import SERVICE
    from kubewright.webhooks.registration.manifests import ServiceReference, conversion_stanza

    if "conversion" not in crd["spec"]:
        return crd
    others = {key: part for key, part in crd["spec"].items() if key != "conversion"}
    if current is not None and current.get("spec.conversion.strategy") == "Webhook":
        return {**crd, "spec": others}
    service = ServiceReference(name=f"{operator.name}-{SERVICE.name}", namespace=operator.namespace)
    return {**crd, "spec": {**others, "conversion": conversion_stanza(service=service)}}


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
