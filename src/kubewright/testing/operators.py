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

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, final
from uuid import uuid4

from kubewright._base import yaml
from kubewright._base.clock import Clock
from kubewright._base.tasks import cancel_and_wait
from kubewright.api.codec import from_tree, to_tree
from kubewright.api.dynamic import Dynamic
from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.cache.cache import Cache
from kubewright.cache.scope import Scope
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.client.config.credentials import StaticToken
from kubewright.client.connect import connect
from kubewright.client.transport.default import default_transport
from kubewright.client.transport.retries import RetryingTransport
from kubewright.cluster.install import install_crds
from kubewright.cluster.processes.ports import free_ports
from kubewright.controllers.declaration import Declaration
from kubewright.errors import ApiError, ClusterError, TransportError
from kubewright.generate.project import operator_crds
from kubewright.generate.rbac.permissions import HOME
from kubewright.generate.rbac.roles import ACCOUNT, rbac_files
from kubewright.k8s.authorization.v1 import SubjectAccessReview
from kubewright.k8s.coordination.v1 import Lease
from kubewright.k8s.core.v1 import Namespace
from kubewright.manager.manager import Manager
from kubewright.manager.operator import Operator, load_operator, operator_of
from kubewright.manager.options import ManagerOptions
from kubewright.testing.clock import VirtualClock
from kubewright.testing.faults import FaultyTransport
from kubewright.testing.waiting import key_in

if TYPE_CHECKING:
    from kubewright.webhooks.registration.local import LocalWebhooks

__all__ = ("RunningOperator", "running")

K = TypeVar("K", bound=KubeObject)
Tree = dict[str, Any]
_MANAGER: Final = "kubewright-testing"
_MARKER: Final = "kubewright.io/testing-marker"
_PATIENCE: Final = 30.0
"""Seconds a server may take to notice roles and webhooks."""
_PAUSE: Final = 0.02
_TICK: Final = 0.1
"""Seconds by which a clock that stands still is moved at once when an operator ends."""


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

    async def noticed(
        self,
        kind: type[K],
        name: str | ObjectKey,
        holds: Callable[[K | None], object],
        *,
        namespace: str | None = None,
        scope: Scope | None = None,
        timeout: float = 30.0,
    ) -> None:
        """Return once the operator's cache shows the object so; None stands for no object.

        The server knows of a change before the operator does. What the operator writes shows that it knows, too; what
        it only answers, as a webhook that reads from the cache, does not. `scope` is that in which the operator watches
        the kind, if it declares one.
        """
        cache = self.manager.cache
        assert isinstance(cache, Cache)
        key = key_in(self.client, kind, name, namespace)
        changed = asyncio.Event()
        with cache.use(kind, scope=scope) as informer:
            subscription = informer.subscribe(lambda _: changed.set())
            try:
                async with asyncio.timeout(timeout):
                    await subscription.wait_for_sync()
                    while not holds(informer.store.get(key)):
                        changed.clear()
                        await changed.wait()
            except TimeoutError:
                shown = informer.store.get(key)
                seen = "no such object" if shown is None else f"\n{yaml.dump(to_tree(shown))}"
                raise AssertionError(
                    f"{kind.__name__} {key} is not noticed as expected after {timeout:g} s; the operator sees {seen}"
                ) from None
            finally:
                subscription.close()

    async def idle(self, *, timeout: float = 30.0) -> None:
        """Return once no reconcile of the operator is under way or due: every requeue has been asked for.

        A status can be seen before the reconcile that wrote it has ended; a clock that is moved in between is moved too
        early for the requeue that it asks for. A change that the operator has not seen yet may start the next reconcile
        at any time.
        """
        controllers = self.manager.controllers
        try:
            async with asyncio.timeout(timeout):
                while any(len(each.queue) or each.queue.processing() for each in controllers):
                    for each in controllers:
                        await each.queue.idle()
        except TimeoutError:
            busy = [f"{each.name} {key}" for each in controllers for key in each.queue.processing()]
            raise AssertionError(
                f"the operator is still at work after {timeout:g} s: {', '.join(busy) or 'nobody takes what is due'}"
            ) from None


@asynccontextmanager
async def running(
    operator: str | Operator | Declaration[Any],
    *,
    on: LocalCluster,
    webhooks: bool = True,
    admin: bool = False,
    clock: Clock | None = None,
    scopes: Mapping[type[KubeObject], Scope] | None = None,
    **options: Any,
) -> AsyncIterator[RunningOperator]:
    """Run an operator, given as its package, its folder or loaded, or a single controller, until the block ends.

    `admin` gives it all rights. `clock` and `scopes` are the manager's: a `Scope(resync=0.1)` has it look at everything
    again and again. Other arguments are those of `ManagerOptions`; no port is opened unless one asks for
    it, and options from the environment do not count. The CRDs, roles and objects stay in the cluster.
    """
    found = _loaded(operator)
    config = Config.load(kubeconfig=on.kubeconfig)
    async with connect(config, field_manager=_MANAGER) as client:
        laptop = _laptop(found, client, config) if webhooks and found.webhooks else None
        if laptop is not None:
            await laptop.release_conversions()
        await install_crds(client, *operator_crds(found).values())
        await _grant(client, found)
        if not admin:
            config = replace(config, credentials=StaticToken(await _token(client, found)))
        wire = FaultyTransport(default_transport(config))
        async with Client(RetryingTransport(wire), namespace=found.namespace, field_manager=found.name) as own:
            manager = _assembled(found, own, laptop, clock=clock, scopes=scopes, options=options)
            async with _time_for_the_end(clock) as ending, manager:
                try:
                    if webhooks and found.webhooks:
                        await _until_webhooks_known(client)
                    yield RunningOperator(client=client, manager=manager, operator=found, faults=wire)
                finally:
                    ending.set()
        if webhooks and found.webhooks:
            with suppress(TransportError):  # whoever has ended the server as well needs to know nothing of it
                await _until_webhooks_known(client)
        if wire.refused:
            raise AssertionError(
                f"{found.name} asked for what its roles do not allow: {'; '.join(wire.refused)}. "
                "Declare it with `rbac(...)` or `owns`, then run `kubewright generate`"
            )


@asynccontextmanager
async def _time_for_the_end(clock: Clock | None) -> AsyncIterator[asyncio.Event]:
    """From when the event is set, a clock that stands still moves with the machine's.

    A run that never ends is left behind when its grace period is over, and nobody else would move the clock then.
    """
    ending = asyncio.Event()

    async def move(stopped: VirtualClock) -> None:
        await ending.wait()
        while True:
            await asyncio.sleep(_TICK)
            await stopped.advance(_TICK)

    mover = asyncio.create_task(move(clock)) if isinstance(clock, VirtualClock) else None
    try:
        yield ending
    finally:
        if mover is not None:
            await cancel_and_wait(mover)


def _loaded(operator: str | Operator | Declaration[Any]) -> Operator:
    if isinstance(operator, Declaration):
        return operator_of(operator)
    return load_operator(operator) if isinstance(operator, str) else operator


def _laptop(operator: Operator, admin: Client, config: Config) -> LocalWebhooks:
    from kubewright.webhooks.registration.local import LocalWebhooks

    (port,) = free_ports(1)
    # Who registers webhooks may do so for the whole cluster: not the operator, which has a Service and roles for that.
    return LocalWebhooks(
        admin, operator.webhooks, operator=operator.name, port=port, server=config.server, address="127.0.0.1"
    )


def _assembled(
    operator: Operator,
    own: Client,
    laptop: LocalWebhooks | None,
    *,
    clock: Clock | None,
    scopes: Mapping[type[KubeObject], Scope] | None,
    options: dict[str, Any],
) -> Manager:
    given: Tree = {"name": operator.name, "health_address": "0", "metrics_address": "0"} | options
    if laptop is None:
        return Manager(
            own,
            *operator.controllers,
            options=ManagerOptions(**given | {"webhooks": False}),
            namespaces=operator.namespaces,
            scopes=scopes,
            clock=clock,
        )
    return Manager(
        own,
        *operator.controllers,
        *operator.webhooks,
        laptop,
        options=ManagerOptions(**given | {"webhook_host": "127.0.0.1", "webhook_port": laptop.port}),
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
    try:
        async with asyncio.timeout(_PATIENCE):
            for review in _reviews(trees):
                await _until_allowed(client, review)
    except TimeoutError:
        raise ClusterError(
            f"the roles of {operator.name} were applied, but the server did not heed them within {_PATIENCE:g} s; "
            "see kubectl auth can-i --list"
        ) from None


async def _until_allowed(client: Client, review: Tree) -> None:
    """A server hears of roles and bindings a moment after they were written; what it denies till then is no finding."""
    while True:
        answer = await client.create(from_tree(SubjectAccessReview, {"spec": review}))
        if answer.status is not None and answer.status.allowed:
            return
        await asyncio.sleep(_PAUSE)


def _reviews(trees: list[Tree]) -> Iterator[Tree]:
    """For each rule that is bound to an account, a question that is answered yes once the server knows it."""
    rules: dict[tuple[str, str, str], list[Tree]] = {}
    for tree in trees:
        metadata = tree["metadata"]
        rules[tree["kind"], metadata.get("namespace", ""), metadata["name"]] = tree.get("rules") or []
    for tree in trees:
        role, home = tree.get("roleRef", {}), tree["metadata"].get("namespace", "")
        place = home if role.get("kind") == "Role" else ""
        for rule in rules.get((role.get("kind", ""), place, role.get("name", "")), ()):
            yield from (_review(subject, rule, home) for subject in tree["subjects"])


def _review(subject: Tree, rule: Tree, namespace: str) -> Tree:
    home = subject["namespace"]
    account = {
        "user": f"system:serviceaccount:{home}:{subject['name']}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{home}", "system:authenticated"],
    }
    verb = rule["verbs"][0]
    if "nonResourceURLs" in rule:
        return {**account, "nonResourceAttributes": {"path": rule["nonResourceURLs"][0], "verb": verb}}
    resource, _, subresource = rule["resources"][0].partition("/")
    asked = {"namespace": namespace, "verb": verb, "group": rule["apiGroups"][0], "resource": resource}
    names = rule.get("resourceNames", ("",))
    return {**account, "resourceAttributes": {**asked, "subresource": subresource, "name": names[0]}}


async def _until_webhooks_known(client: Client) -> None:
    """A server hears of webhooks a moment after they were registered or removed, but in that order.

    So one more of each kind is registered, which nobody answers. Once the server asks it, it knows of those before.
    """
    from kubewright.webhooks.registration.targets import KINDS

    for kind in KINDS.values():
        marker = await client.create(from_tree(kind, _marker(f"{_MANAGER}-{uuid4().hex[:10]}")))
        try:
            async with asyncio.timeout(_PATIENCE):
                await _until_asked(client, marker.metadata.name)
        except TimeoutError:
            raise ClusterError(
                f"a {kind.kind} was registered, but the server did not heed it within {_PATIENCE:g} s; see its log"
            ) from None
        finally:
            await client.delete(marker)


def _marker(name: str) -> Tree:
    """A configuration for nothing but a Lease with its label, which nobody makes."""
    rule = {
        "operations": ["CREATE"],
        "apiGroups": ["coordination.k8s.io"],
        "apiVersions": ["v1"],
        "resources": ["leases"],
    }
    hook = {
        "name": f"{name}.kubewright.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "objectSelector": {"matchLabels": {_MARKER: name}},
        "rules": [rule],
        "sideEffects": "None",
    }
    return {"metadata": {"name": name}, "webhooks": [hook]}


async def _until_asked(client: Client, name: str) -> None:
    """Returns when the server asks the webhook of a marker about a Lease with its label."""
    probe = Lease(metadata=ObjectMeta(name=name, namespace="default", labels={_MARKER: name}))
    while True:
        try:
            await client.create(probe, dry_run=True)
        except ApiError as error:
            if f"{name}.kubewright.io" in str(error):
                return
        await asyncio.sleep(_PAUSE)


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
