"""`kubewright run`: run the operator in this process, against a cluster or an embedded one.

Options come from the environment as in a container, but no port is opened unless named: several operators may run on
one machine. Webhooks are served from here and registered for as long as the operator runs.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import click

from kubewright.cli.targets import cluster_options, find_operator, load_config, operator_argument
from kubewright.errors import ConfigError

if TYPE_CHECKING:
    from kubewright.client.client import Client
    from kubewright.client.config.config import Config
    from kubewright.manager.clusters import CacheFactory
    from kubewright.manager.manager import Manager
    from kubewright.manager.operator import Operator
    from kubewright.manager.options import ManagerOptions

__all__ = ("assemble_manager", "local_options", "run")


@click.command()
@operator_argument
@cluster_options
@click.option("--embedded", is_flag=True, help="On an embedded control plane of its own, with the CRDs installed.")
@click.option("--no-webhooks", is_flag=True, help="Do not serve webhooks; ENABLE_WEBHOOKS=false says the same.")
@click.option("--webhook-address", default="", metavar="HOST", help="Where the API server can call this machine.")
def run(
    *,
    operator: str | None,
    kubeconfig: str | None,
    context: str | None,
    embedded: bool,
    no_webhooks: bool,
    webhook_address: str,
) -> None:
    """Run the operator here until Ctrl-C.

    FILE is a Python file with controllers, or a package; without it the project in this folder is meant.
    """
    from kubewright._base.loop import run as run_loop

    if embedded and (kubeconfig or context):
        raise click.UsageError("--embedded brings its own cluster; leave --kubeconfig and --context out.")
    found = find_operator(operator)
    if not found.controllers and not found.webhooks:
        raise ConfigError(
            f"{found.package} declares no controller and no webhook; write one below @controller, or add one to the "
            "project with `kubewright create api`"
        )
    options = local_options(found, webhooks=not no_webhooks)
    if embedded:
        run_loop(_run_embedded(found, options))
    else:
        run_loop(_run(found, options, load_config(kubeconfig, context), webhook_address))


def local_options(operator: Operator, *, webhooks: bool) -> ManagerOptions:
    """The options of an operator outside a container: from the environment, and no ports unless named."""
    from kubewright.manager.options import ManagerOptions

    given: dict[str, Any] = {"name": operator.name}
    given |= {
        name: "0" for name in ("health_address", "metrics_address") if f"KUBEWRIGHT_{name.upper()}" not in os.environ
    }
    if not webhooks:
        given["webhooks"] = False
    return ManagerOptions.load(**given)


async def _run_embedded(operator: Operator, options: ManagerOptions) -> None:
    from kubewright.client.config.config import Config
    from kubewright.cluster.install import install_crds
    from kubewright.cluster.planes.embedded import EmbeddedCluster
    from kubewright.generate.crds.manifests import crd_for

    async with EmbeddedCluster() as cluster:
        await install_crds(cluster.client, *(crd_for(*classes) for classes in operator.by_crd.values()))
        config = Config.load(kubeconfig=cluster.kubeconfig)
        click.echo(f"An embedded cluster is ready at {config.server}. Ctrl-C stops it.", err=True)
        click.echo(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")
        await _run(operator, options, config, "127.0.0.1")


async def _run(operator: Operator, options: ManagerOptions, config: Config, address: str) -> None:
    from kubewright.client.connection import connect

    async with connect(config) as client:
        # A manager waits until the server is available; a person at a terminal wants an error instead.
        await client.request("GET", "/version", timeout=10)
        await assemble_manager(operator, options, config, client, address=address).run()


def assemble_manager(
    operator: Operator,
    options: ManagerOptions,
    config: Config,
    client: Client,
    *,
    address: str,
    cache: CacheFactory | None = None,
) -> Manager:
    """The manager of an operator outside the cluster; `client` registers its webhooks, if it has any.

    `cache` is as for `Manager`.
    """
    from kubewright.manager.manager import Manager
    from kubewright.webhooks.registration.local import LocalWebhooks

    if not (operator.webhooks and options.webhooks):
        return Manager(
            *operator.controllers, config=config, options=options, namespaces=operator.namespaces, cache=cache
        )
    port = options.webhook_port
    local = LocalWebhooks(
        client, operator.webhooks, operator=operator.name, port=port, server=config.server, address=address
    )
    runnables = (*operator.controllers, *operator.webhooks, local)
    return Manager(
        *runnables,
        config=config,
        options=options,
        namespaces=operator.namespaces,
        cache=cache,
        certificates=local.certificates,
    )
