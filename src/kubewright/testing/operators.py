"""running(): an operator at work on a local cluster, with no more rights than its generated roles give it.

    async with Cluster.embedded() as cluster, running("shop", on=cluster) as operator:
        await operator.client.create(Shop.named("corner", "default"))
        shop = await until(operator.client, Shop, ObjectKey("default", "corner"), lambda shop: shop.status.open)

The CRDs are installed, the roles of `kubewright generate` are applied, and the manager runs in this process as the
service account they are bound to. What that account asked for and was denied is in `refused`, and fails the test
when the block ends: a permission that is missing is found here and not in production. Webhooks are served
on loopback and registered. Everything the operator sends goes through `faults`, where a test breaks it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol, final

from kubewright._base import yaml
from kubewright._base.clock import Clock
from kubewright.api.codec import from_tree
from kubewright.api.dynamic import Dynamic
from kubewright.api.resource import KubeObject
from kubewright.cache.scope import Scope
from kubewright.client.client import Client
from kubewright.client.config import Config
from kubewright.client.connect import connect
from kubewright.client.credentials import StaticToken
from kubewright.client.default_transport import default_transport
from kubewright.client.retries import Retrying
from kubewright.cluster.install import install_crds
from kubewright.cluster.ports import free_ports
from kubewright.generate.operator import Operator, load_operator
from kubewright.generate.project import operator_crds
from kubewright.generate.rbac import HOME
from kubewright.generate.roles import ACCOUNT, rbac_files
from kubewright.k8s.core.v1 import Namespace
from kubewright.manager.manager import Manager
from kubewright.manager.options import ManagerOptions
from kubewright.testing.faults import FaultyTransport

__all__ = ("RunningOperator", "running")

Tree = dict[str, Any]
_MANAGER: Final = "kubewright-testing"


class LocalCluster(Protocol):
    """What `Cluster.embedded()` and `Cluster.real()` give."""

    @property
    def kubeconfig(self) -> Path: ...


@final
class RunningOperator:
    """What a test works with."""

    def __init__(self, *, client: Client, manager: Manager, operator: Operator, faults: FaultyTransport) -> None:
        self.client = client
        """The administrator's."""
        self.manager = manager
        self.operator = operator
        self.faults = faults
        """What the operator's own requests go through."""

    @property
    def refused(self) -> list[str]:
        """What the operator asked for without having the right to, in the server's words, each once."""
        return list(self.faults.refused)


@asynccontextmanager
async def running(
    operator: str | Operator,
    *,
    on: LocalCluster,
    webhooks: bool = True,
    admin: bool = False,
    clock: Clock | None = None,
    scopes: Mapping[type[KubeObject], Scope] | None = None,
    **options: Any,
) -> AsyncIterator[RunningOperator]:
    """Run an operator, given as its package, its folder or loaded, until the block ends.

    `admin` gives it all rights. `clock` and `scopes` are the manager's: a `Scope(resync=0.1)` has it look at everything
    again and again. Other arguments are those of `ManagerOptions`; no port is opened unless one asks for
    it, and options from the environment do not count. The CRDs, roles and objects stay in the cluster.
    """
    found = load_operator(operator) if isinstance(operator, str) else operator
    config = Config.load(kubeconfig=on.kubeconfig)
    async with connect(config, field_manager=_MANAGER) as client:
        await install_crds(client, *operator_crds(found).values())
        await _grant(client, found)
        if not admin:
            config = replace(config, credentials=StaticToken(await _token(client, found)))
        wire = FaultyTransport(default_transport(config))
        async with Client(Retrying(wire), namespace=found.namespace, field_manager=found.name) as own:
            manager = _assembled(
                found, client, own, config, webhooks=webhooks, clock=clock, scopes=scopes, options=options
            )
            async with manager:
                yield RunningOperator(client=client, manager=manager, operator=found, faults=wire)
        if wire.refused:
            raise AssertionError(
                f"{found.name} asked for what its roles do not allow: {'; '.join(wire.refused)}. "
                "Declare it with `rbac(...)` or `owns`, then run `kubewright generate`"
            )


def _assembled(
    operator: Operator,
    admin: Client,
    own: Client,
    config: Config,
    *,
    webhooks: bool,
    clock: Clock | None,
    scopes: Mapping[type[KubeObject], Scope] | None,
    options: dict[str, Any],
) -> Manager:
    given: Tree = {"name": operator.name, "health_address": "0", "metrics_address": "0"} | options
    if not (webhooks and operator.webhooks):
        return Manager(
            own,
            *operator.controllers,
            options=ManagerOptions(**given | {"webhooks": False}),
            namespaces=operator.namespaces,
            scopes=scopes,
            clock=clock,
        )
    from kubewright.webhooks.laptop import Laptop

    (port,) = free_ports(1)
    # Who registers webhooks may do so for the whole cluster: not the operator, which has a Service and roles for that.
    laptop = Laptop(
        admin, operator.webhooks, operator=operator.name, port=port, server=config.server, address="127.0.0.1"
    )
    return Manager(
        own,
        *operator.controllers,
        *operator.webhooks,
        laptop,
        options=ManagerOptions(**given | {"webhook_host": "127.0.0.1", "webhook_port": port}),
        namespaces=operator.namespaces,
        scopes=scopes,
        certificates=laptop.certificates,
        clock=clock,
    )


async def _grant(client: Client, operator: Operator) -> None:
    """The operator's namespace, account and roles, with the names that `config/default` gives them."""
    files = rbac_files(operator)
    trees = [_placed(tree, operator) for name, text in files.items() for tree in yaml.load_all(text)]
    homes = {tree["metadata"]["namespace"] for tree in trees if "namespace" in tree["metadata"]}
    for namespace in sorted(homes | {operator.namespace}):
        await client.apply(Namespace.named(namespace), force=True)
    for tree in trees:
        await client.apply(from_tree(Dynamic(tree["apiVersion"], tree["kind"]), tree), force=True)


def _placed(tree: Tree, operator: Operator) -> Tree:
    """A manifest with its names and namespace filled in, as kustomize would."""
    metadata = tree["metadata"]
    if metadata.get("namespace", HOME) != HOME:
        return tree  # made for another namespace, with all names as they will be
    metadata["name"] = f"{operator.name}-{metadata['name']}"
    if "namespace" in metadata:
        metadata["namespace"] = operator.namespace
    if "roleRef" in tree:
        tree["roleRef"]["name"] = f"{operator.name}-{tree['roleRef']['name']}"
        for subject in tree["subjects"]:
            subject |= {"name": f"{operator.name}-{subject['name']}", "namespace": operator.namespace}
    return tree


async def _token(client: Client, operator: Operator) -> str:
    account = f"/api/v1/namespaces/{operator.namespace}/serviceaccounts/{operator.name}-{ACCOUNT}"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await client.request("POST", f"{account}/token", body=json.dumps(asked).encode())
    token: str = json.loads(answer.body)["status"]["token"]
    return token
