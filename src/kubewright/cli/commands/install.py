"""`kubewright install` and `uninstall`: the CRDs of the operator's kinds.

They come from the classes themselves, so they are never stale. An existing conversion webhook is not changed; else the
deployed operator's Service is named, and until it runs the server rejects conversions rather than returning objects
unconverted.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from kubewright.cli.progress import display
from kubewright.cli.reports import with_json_output
from kubewright.cli.targets import cluster_options, find_operator, load_config, operator_argument
from kubewright.errors import ClusterError, ConfigError, NotFound

if TYPE_CHECKING:
    from kubewright.api.dynamic import DynamicObject
    from kubewright.client.client import Client
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
@click.option("--timeout", default=60.0, show_default=True, metavar="SECONDS", help="How long a CRD may take.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_json_output
def uninstall(
    *, operator: str | None, kubeconfig: str | None, context: str | None, timeout: float, yes: bool
) -> dict[str, Any]:
    """Remove the CRDs of the operator, and with them every object of its kinds."""
    names = list(find_operator(operator).by_crd)
    config = load_config(kubeconfig, context)
    if names and not yes and sys.stdin.isatty():
        click.confirm(f"Delete {', '.join(names)} and all their objects on {config.server}?", abort=True, err=True)
    gone = asyncio.run(_uninstall(config, names, timeout))
    for name in gone:
        click.echo(f"{name} is deleted.", err=True)
    return {"server": config.server, "removed": gone}


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


async def _uninstall(config: Config, names: list[str], timeout: float) -> list[str]:
    from kubewright.client.connection import connect

    async with connect(config) as client:
        with display() as progress:
            gone = []
            for done, name in enumerate(names):
                progress("removing CRDs", done, len(names))
                if await _remove_crd(client, name, timeout):
                    gone.append(name)
            return gone


async def _remove_crd(client: Client, name: str, timeout: float) -> bool:
    """Delete a CRD and wait until it is gone; returns whether it existed."""
    from kubewright.k8s.apiextensions.v1 import CustomResourceDefinition

    try:
        async with asyncio.timeout(timeout):
            left = await client.delete(CustomResourceDefinition, name)
            if left is None:
                return True
            # Watch from the version of the delete, so that the DELETED event is seen even if it is past.
            since, fields = left.metadata.resource_version, {"metadata.name": name}
            async with client.watch(CustomResourceDefinition, fields=fields, resource_version=since) as events:
                async for event in events:
                    if event.type == "DELETED":
                        break
    except NotFound:
        return False
    except TimeoutError:
        raise ClusterError(
            f"the CRD {name} is not gone after {timeout:g} s; an object of it may wait for a finalizer: run the "
            "operator until it is done, or see kubectl describe crd"
        ) from None
    return True
