"""`kubewright install` and `uninstall`: the CRDs of the operator's kinds, in and out of a cluster.

They come from the classes themselves, so they are never stale. Who converts between versions is not changed where
somebody does already; else the deployed operator is named, and until it is there the server refuses to convert rather
than to pass one version off as another.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from kubewright.cli.progress import display
from kubewright.cli.reports import reported
from kubewright.cli.targets import for_cluster, for_operator, found_config, found_operator
from kubewright.errors import ClusterError, ConfigError, NotFound

if TYPE_CHECKING:
    from kubewright.api.dynamic import DynamicObject
    from kubewright.client.client import Client
    from kubewright.client.config.config import Config
    from kubewright.manager.operator import Operator

__all__ = ("install", "uninstall")

Tree = dict[str, Any]


@click.command()
@for_operator
@for_cluster
@click.option("--timeout", default=30.0, show_default=True, metavar="SECONDS", help="How long a CRD may take.")
@reported
def install(*, operator: str | None, kubeconfig: str | None, context: str | None, timeout: float) -> dict[str, Any]:
    """Install the CRDs of the operator; returns when the cluster serves their kinds."""
    from kubewright.generate.project import operator_crds

    found = found_operator(operator)
    crds = operator_crds(found)
    if not crds:
        raise ConfigError("the operator has no kinds of its own; add one with `kubewright create api`")
    config = found_config(kubeconfig, context)
    asyncio.run(_install(config, found, list(crds.values()), timeout))
    for name in crds:
        click.echo(f"{name} is established on {config.server}.", err=True)
    return {"server": config.server, "installed": list(crds)}


@click.command()
@for_operator
@for_cluster
@click.option("--timeout", default=60.0, show_default=True, metavar="SECONDS", help="How long a CRD may take.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@reported
def uninstall(
    *, operator: str | None, kubeconfig: str | None, context: str | None, timeout: float, yes: bool
) -> dict[str, Any]:
    """Remove the CRDs of the operator, and with them every object of its kinds."""
    names = list(found_operator(operator).by_crd)
    config = found_config(kubeconfig, context)
    if names and not yes and sys.stdin.isatty():
        click.confirm(f"Delete {', '.join(names)} and all their objects on {config.server}?", abort=True, err=True)
    gone = asyncio.run(_uninstall(config, names, timeout))
    for name in gone:
        click.echo(f"{name} is gone.", err=True)
    return {"server": config.server, "removed": gone}


async def _install(config: Config, operator: Operator, crds: list[Tree], timeout: float) -> None:
    from kubewright.client.connection import connect
    from kubewright.cluster.install import CRD, install_crds

    async with connect(config) as client:
        with display() as progress:
            for done, crd in enumerate(crds):
                progress("installing CRDs", done, len(crds))
                present = await client.find(CRD, crd["metadata"]["name"])
                await install_crds(client, _converted(crd, present, operator), timeout=timeout)


def _converted(crd: Tree, present: DynamicObject | None, operator: Operator) -> Tree:
    """With the operator's Service as it is called in a cluster, unless somebody converts already."""
    from kubewright.generate.webhooks import SERVICE
    from kubewright.webhooks.registration.manifests import ServiceReference, conversion_stanza

    if "conversion" not in crd["spec"]:
        return crd
    others = {key: part for key, part in crd["spec"].items() if key != "conversion"}
    if present is not None and present.get("spec.conversion.strategy") == "Webhook":
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
