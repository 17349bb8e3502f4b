"""`kubewright run`: run the operator in this process, against a cluster or an embedded one.

It has the flags of the packaged operator (`kubewright.manager.flags`), and options come from the same places in the
same order. Only some defaults differ: no port is opened unless named, since several operators may run on one machine,
and webhooks are served from here and registered for as long as the operator runs.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kubewright.cli.namespaces import create_namespaces, print_missing_namespaces, print_namespaces, watched_by
from kubewright.cli.targets import cluster_options, find_operator, load_config, operator_argument
from kubewright.errors import ConfigError
from kubewright.manager.flags import FLAGS, PRECEDENCE, Flag, Flags, flag_value

if TYPE_CHECKING:
    from kubewright.client.config.config import Config
    from kubewright.manager.clusters import CacheFactory
    from kubewright.manager.manager import Manager
    from kubewright.manager.operator import Operator
    from kubewright.manager.options import ManagerOptions

__all__ = ("assemble_manager", "local_options", "run", "without_conversion")

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULTS: Final = {
    "health_address": "0",
    "metrics_address": "0",
    "debug_address": "0",
    "webhook_certificates": "local",
}
"""Of an operator outside a container."""


def manager_options(command: F) -> F:
    """The options of the manager, one for each flag of the packaged operator."""
    for flag in reversed(FLAGS):
        alone: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if flag.boolean else {}
        command = click.option(
            flag.spelling,
            flag.name,
            metavar=flag.metavar,
            callback=partial(_checked, flag),
            help=flag.help({**_DEFAULTS, "name": "the operator's"}),
            **alone,
        )(command)
    return click.option("--config", metavar="FILE", help="A YAML file with options [KUBEWRIGHT_CONFIG].")(command)


def _checked(flag: Flag, context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    try:
        return None if value is None else flag_value(flag, value)
    except ConfigError as error:
        raise click.BadParameter(str(error), ctx=context, param=parameter) from None


@click.command(epilog=PRECEDENCE)
@operator_argument
@cluster_options
@click.option("--embedded", is_flag=True, help="On an embedded control plane of its own, with the CRDs installed.")
@click.option("--no-webhooks", is_flag=True, help="The same as --webhooks=false.")
@manager_options
def run(
    *,
    operator: str | None,
    kubeconfig: str | None,
    context: str | None,
    embedded: bool,
    no_webhooks: bool,
    config: str | None,
    **options: Any,
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
    given = {name: value for name, value in options.items() if value is not None}
    if no_webhooks:
        given["webhooks"] = False
    flags = Flags(config=config, options=given)
    if embedded:
        run_loop(_run_embedded(found, local_options(found, flags, webhook_address="127.0.0.1")))
    else:
        run_loop(_run(found, local_options(found, flags), load_config(kubeconfig, context)))


def local_options(operator: Operator, flags: Flags, **defaults: Any) -> ManagerOptions:
    """The options of an operator outside a container. Ports and certificates are the place's, not the operator's."""
    return flags.load_options(**{**operator.option_defaults, **_DEFAULTS, "name": operator.name, **defaults})


async def _run_embedded(operator: Operator, options: ManagerOptions) -> None:
    from kubewright.client.config.config import Config
    from kubewright.cluster.install import install_crds
    from kubewright.cluster.planes.embedded import EmbeddedCluster
    from kubewright.generate.project import operator_crds

    async with EmbeddedCluster() as cluster:
        crds = operator_crds(operator, webhooks=options.webhooks)
        await install_crds(cluster.client, *map(without_conversion, crds.values()))
        await create_namespaces(cluster.client, watched_by(operator, options))
        config = Config.load(kubeconfig=cluster.kubeconfig)
        click.echo(f"An embedded cluster is ready at {config.server}. Ctrl-C stops it.", err=True)
        click.echo(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")
        await _run(operator, options, config)


def without_conversion(crd: dict[str, Any]) -> dict[str, Any]:
    """The CRD for an operator that runs here: LocalWebhooks points the conversion to this process."""
    return {**crd, "spec": {key: part for key, part in crd["spec"].items() if key != "conversion"}}


async def _run(operator: Operator, options: ManagerOptions, config: Config) -> None:
    from kubewright.client.connection import connect

    async with connect(config) as client:
        # A manager waits until the server is available; a person at a terminal wants an error instead.
        await client.request("GET", "/version", timeout=10)
        await print_missing_namespaces(client, watched_by(operator, options))
    print_namespaces(watched_by(operator, options))
    await assemble_manager(operator, options, config).run()


def assemble_manager(
    operator: Operator, options: ManagerOptions, config: Config, *, cache: CacheFactory | None = None
) -> Manager:
    """The manager of an operator; `cache` is as for `Manager`."""
    from kubewright.manager.manager import Manager

    return Manager(
        *operator.runnables,
        config=config,
        options=options,
        namespaces=watched_by(operator, options),
        cache=cache,
    )
