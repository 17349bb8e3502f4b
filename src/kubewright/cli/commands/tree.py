"""`kubewright tree`: an object and everything it owns, with conditions.

Ownership comes from the owner references of all objects in the namespace, so it works for every kind. Kinds that the
user may not list are left out.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import click

from kubewright.cli.progress import display
from kubewright.cli.reports import output_option, print_json
from kubewright.cli.targets import cluster_options, load_config
from kubewright.cli.terminals import visible
from kubewright.errors import ApiError

if TYPE_CHECKING:
    from rich.tree import Tree as RichTree

    from kubewright.api.dynamic import DynamicObject
    from kubewright.client.client import Client
    from kubewright.client.config.config import Config
    from kubewright.client.discovery import ApiResource

__all__ = ("tree",)

Node = dict[str, Any]
_MAX_CONCURRENT_LISTS: Final = 8
_WIDE: Final = 10_000
_DEEPEST: Final = 100
"""Levels below the object. What Kubernetes owns is a few levels deep."""
_SKIPPED_RESOURCES: Final = frozenset(("endpoints", "events", "leases"))


@click.command()
@cluster_options
@click.option("-n", "--namespace", help="The object's namespace; else the context's.")
@output_option
@click.argument("kind")
@click.argument("name")
def tree(
    *, kubeconfig: str | None, context: str | None, namespace: str | None, output_format: str, kind: str, name: str
) -> None:
    """Show an object and what it owns."""
    found = asyncio.run(_read(load_config(kubeconfig, context), kind, name, namespace))
    if output_format == "json":
        print_json(found)
        return
    from rich.console import Console

    # rich cuts a tree at the console's width; a wide console leaves the line breaks to the terminal.
    Console(highlight=False, width=_WIDE).print(_draw(found), soft_wrap=True)


async def _read(config: Config, kind: str, name: str, namespace: str | None) -> Node:
    from kubewright.client.connection import connect

    async with connect(config) as client:
        resource = await client.discovery.resolve(kind)
        place = (namespace or client.namespace) if resource.namespaced else None
        root = await client.get(_class(resource), name, namespace=place)
        kinds: dict[tuple[str, str], ApiResource] = {}
        for other in (await client.discovery.resources()).items:
            # A namespaced object owns only objects in its namespace.
            if (
                "list" in other.verbs
                and other.gvr.resource not in _SKIPPED_RESOURCES
                and (other.namespaced or not place)
            ):
                kinds.setdefault((other.gvr.group, other.gvr.resource), other)
        gate = asyncio.Semaphore(_MAX_CONCURRENT_LISTS)
        with display(after=1.0) as progress:
            reading = [_list_objects(client, other, place, gate) for other in kinds.values()]
            lists = []
            for done, found in enumerate(asyncio.as_completed(reading)):
                progress("reading", done, len(reading))
                lists.append(await found)
    owned: dict[str, list[DynamicObject]] = {}
    for obj in (obj for found in lists for obj in found):
        for owner in obj.metadata.owner_references:
            owned.setdefault(owner.uid, []).append(obj)
    return _node(root, owned, set(), _DEEPEST)


def _class(resource: ApiResource) -> type[DynamicObject]:
    from kubewright.api.dynamic import Dynamic

    gvk = resource.gvk
    return Dynamic(gvk.api_version, gvk.kind, plural=resource.gvr.resource, namespaced=resource.namespaced)


async def _list_objects(
    client: Client, resource: ApiResource, namespace: str | None, gate: asyncio.Semaphore
) -> list[DynamicObject]:
    async with gate:
        try:
            return list(await client.list(_class(resource), namespace=namespace))
        except ApiError:
            return []


def _node(obj: DynamicObject, owned: dict[str, list[DynamicObject]], shown: set[str], levels: int) -> Node:
    """An object and what it owns. What several objects own is shown below each of them, and what it owns only once:
    users of a cluster can make a few objects own each other in more ways than a machine can hold."""
    uid = obj.metadata.uid or ""
    children = sorted(owned.get(uid, ()), key=lambda child: (child.kind, child.metadata.name))
    omitted = bool(children) and (uid in shown or not levels)
    shown.add(uid)
    conditions = obj.get("status.conditions") or ()
    return {
        "apiVersion": obj.api_version,
        "kind": obj.kind,
        "namespace": obj.metadata.namespace,
        "name": obj.metadata.name,
        "phase": obj.get("status.phase"),
        "deleting": obj.metadata.deletion_timestamp is not None,
        "conditions": [
            {key: item[key] for key in ("type", "status", "reason", "message") if item.get(key)} for item in conditions
        ],
        "children": [] if omitted else [_node(child, owned, shown, levels - 1) for child in children],
        "omitted": omitted,
    }


def _draw(node: Node) -> RichTree:
    from rich.tree import Tree

    drawn = Tree(_label(node), guide_style="dim")
    for child in node["children"]:
        drawn.add(_draw(child))
    return drawn


def _label(node: Node) -> str:
    from rich import markup

    def escape(text: object) -> str:
        return markup.escape(visible(str(text)))

    words = [f"[bold]{escape(node['kind'])}[/bold]/{escape(node['name'])}"]
    if node["deleting"]:
        words.append("[red]being deleted[/red]")
    if node["omitted"]:
        words.append("[dim]owns what is not shown again[/dim]")
    if node["phase"]:
        words.append(escape(node["phase"]))
    for item in node["conditions"]:
        colour = {"True": "green", "False": "yellow"}.get(item.get("status", ""), "dim")
        reason = f" ({item['reason']})" if item.get("reason") else ""
        words.append(f"[{colour}]{escape(item['type'])}={escape(item.get('status', '?'))}{escape(reason)}[/{colour}]")
    return "  ".join(words)
