"""`kubewright install` and `uninstall`: the CRDs of the operator's kinds, in and out of a cluster.

They come from the classes themselves, so they are never stale.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from kubewright.cli.clusters import for_cluster, for_operator, found_config, found_operator
from kubewright.cli.progress import display
from kubewright.errors import ClusterError, ConfigError, NotFound

if TYPE_CHECKING:
    from kubewright.client.client import Client
    from kubewright.client.config import Config

__all__ = ("install", "uninstall")


@click.command()
@for_operator
@for_cluster
@click.option("--timeout", default=30.0, show_default=True, metavar="SECONDS", help="How long a CRD may take.")
def install(*, operator: str | None, kubeconfig: str | None, context: str | None, timeout: float) -> None:
    """Install the CRDs of the operator; returns when the cluster serves their kinds."""
    from kubewright.generate.project import operator_crds

    crds = operator_crds(found_operator(operator))
    if not crds:
        raise ConfigError("the operator has no kinds of its own; add one with `kubewright create api`")
    config = found_config(kubeconfig, context)
    asyncio.run(_install(config, list(crds.values()), timeout))
    for name in crds:
        click.echo(f"{name} is established on {config.server}.", err=True)


@click.command()
@for_operator
@for_cluster
@click.option("--timeout", default=60.0, show_default=True, metavar="SECONDS", help="How long a CRD may take.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def uninstall(*, operator: str | None, kubeconfig: str | None, context: str | None, timeout: float, yes: bool) -> None:
    """Remove the CRDs of the operator, and with them every object of its kinds."""
    names = list(found_operator(operator).by_crd)
    config = found_config(kubeconfig, context)
    if names and not yes and sys.stdin.isatty():
        click.confirm(f"Delete {', '.join(names)} and all their objects on {config.server}?", abort=True, err=True)
    for name in asyncio.run(_uninstall(config, names, timeout)):
        click.echo(f"{name} is gone.", err=True)


async def _install(config: Config, crds: list[dict[str, object]], timeout: float) -> None:
    from kubewright.client.connect import connect
    from kubewright.cluster.install import install_crds

    async with connect(config, field_manager="kubewright-install") as client:
        with display() as progress:
            for done, crd in enumerate(crds):
                progress("installing CRDs", done, len(crds))
                await install_crds(client, crd, timeout=timeout)


async def _uninstall(config: Config, names: list[str], timeout: float) -> list[str]:
    from kubewright.client.connect import connect

    async with connect(config) as client:
        with display() as progress:
            gone = []
            for done, name in enumerate(names):
                progress("removing CRDs", done, len(names))
                if await _removed(client, name, timeout):
                    gone.append(name)
            return gone


async def _removed(client: Client, name: str, timeout: float) -> bool:
    """Whether there was one; returns when it is gone."""
    from kubewright.k8s.apiextensions.v1 import CustomResourceDefinition

    try:
        async with asyncio.timeout(timeout):
            left = await client.delete(CustomResourceDefinition, name)
            if left is None:
                return True
            # From the version that was marked for deletion on: whatever came after it is told, also if it is over.
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
