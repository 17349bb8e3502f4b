"""`kubewright version`: the versions of Kubewright and of the server, and whether they are compatible.

Kubewright's kinds are those of one Kubernetes minor version. A server one minor older or newer has all it needs;
beyond that kinds may be missing on one side.
"""

from __future__ import annotations

import asyncio
import json
import platform
from typing import TYPE_CHECKING, Any, Final

import click

from kubewright._base.version import __version__
from kubewright.cli.reports import output_option, print_json
from kubewright.cli.targets import cluster_options, load_config
from kubewright.errors import KubewrightError

if TYPE_CHECKING:
    from kubewright.client.config.config import Config

__all__ = ("version",)

_SKEW: Final = 1


@click.command()
@cluster_options
@click.option("--client", is_flag=True, help="Do not ask a server.")
@output_option
def version(*, kubeconfig: str | None, context: str | None, client: bool, output_format: str) -> None:
    """Print the versions of Kubewright and of the cluster, and whether they fit."""
    from kubewright.k8s.release import KUBERNETES_VERSION

    found: dict[str, Any] = {
        "client": {"version": __version__, "kubernetes": KUBERNETES_VERSION, "python": platform.python_version()},
        "supported": _supported(KUBERNETES_VERSION),
    }
    if not client:
        found |= _server(kubeconfig, context, KUBERNETES_VERSION)
    if output_format == "json":
        print_json(found)
    else:
        _print(found)


def _supported(ours: str) -> dict[str, str]:
    """The servers this version works with."""
    major, minor = (int(part) for part in ours.split(".")[:2])
    return {"oldest": f"{major}.{minor - _SKEW}", "newest": f"{major}.{minor + _SKEW}"}


def _server(kubeconfig: str | None, context: str | None, ours: str) -> dict[str, Any]:
    try:
        config = load_config(kubeconfig, context)
        version_info = asyncio.run(_server_version(config))
    except KubewrightError as error:
        return {"server": None, "problem": str(error)}
    apart = int(version_info["minor"].rstrip("+")) - int(ours.split(".")[1])
    return {
        "server": {"version": version_info["gitVersion"].removeprefix("v"), "address": config.server},
        "skew": {"minor": apart, "supported": abs(apart) <= _SKEW, "allowed": _SKEW},
    }


async def _server_version(config: Config) -> dict[str, str]:
    from kubewright.client.client import Client
    from kubewright.client.transport.default import default_transport

    async with Client(
        default_transport(config)
    ) as client:  # without retries: a server that does not answer is no failure
        version_info: dict[str, str] = json.loads((await client.request("GET", "/version", timeout=5)).body)
        return version_info


def _print(found: dict[str, Any]) -> None:
    client = found["client"]
    click.echo(f"kubewright {client['version']}  Kubernetes {client['kubernetes']}  Python {client['python']}")
    if server := found.get("server"):
        click.echo(f"server     {server['version']}  {server['address']}")
        if not found["skew"]["supported"]:
            click.echo(
                f"The server is {abs(found['skew']['minor'])} minor versions away; {_SKEW} is supported.", err=True
            )
    elif "problem" in found:
        click.echo(f"The server was not asked: {found['problem']}", err=True)
