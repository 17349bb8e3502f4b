"""running(): an operator at work on a local cluster, with no more rights than its generated roles give it.

    async with Cluster.embedded() as cluster, running("shop", on=cluster) as operator:
        await operator.client.create(Shop.named("corner", "default"))
        shop = await until(operator.client, Shop, ObjectKey("default", "corner"), lambda shop: shop.status.open)

It installs the CRDs, applies the roles of `kubewright generate`, and runs the manager in this process as the service
account they are bound to. Requests that RBAC denied are in `forbidden`, exceptions of the operator's code in `errors`;
both fail the test when the block ends, so that they are found here and not in production. Webhooks are served on
loopback and registered. Every request of the operator goes through `faults`, where a test breaks it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final
from uuid import uuid4

from kubewright._base import yaml
from kubewright._base.clock import Clock
from kubewright._base.log_formats import stack_of
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
from kubewright.client.connection import connect
from kubewright.client.transport.default import default_transport
from kubewright.client.transport.retries import RetryingTransport
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.cluster import Cluster
from kubewright.cluster.processes.ports import free_ports
from kubewright.controllers.declaration import Declaration
from kubewright.errors import ApiError, ClusterError, ConfigError, TransportError
from kubewright.generate.project import operator_crds
from kubewright.generate.rbac.permissions import HOME
from kubewright.generate.rbac.roles import ACCOUNT, rbac_files
from kubewright.k8s.authorization.v1 import SubjectAccessReview
from kubewright.k8s.coordination.v1 import Lease
from kubewright.k8s.core.v1 import Namespace
from kubewright.manager.manager import Manager
from kubewright.manager.operator import Operator, load_operator, operator_of
from kubewright.manager.options import ManagerOptions
from kubewright.manager.runnables import is_webhook
from kubewright.testing.clock import VirtualClock
from kubewright.testing.faults import FaultyTransport
from kubewright.testing.operator_log import OperatorLog, shown_logs
from kubewright.testing.time_limits import TimeLimit
from kubewright.testing.waiting import key_in
from kubewright.webhooks.registration.local_processes import remove_dead

if TYPE_CHECKING:
    from kubewright.webhooks.registration.local import LocalWebhooks
    from kubewright.webhooks.serving.router import WebhookDeclaration

__all__ = ("RunningOperator", "running")

K = TypeVar("K", bound=KubeObject)
Tree = dict[str, Any]
_MANAGER: Final = "kubewright-testing"
_MARKER: Final = "kubewright.io/testing-marker"
_TIMEOUT: Final = 30.0
"""Seconds an API server may take until roles and webhooks are in effect."""
_PAUSE: Final = 0.02
_TICK: Final = 0.1
"""Seconds by which a virtual clock advances at once while an operator stops."""


@final
class RunningOperator:
    """What a test works with."""

    def __init__(
        self, *, client: Client, manager: Manager, operator: Operator, faults: FaultyTransport, log: OperatorLog
    ) -> None:
        self.client = client
        """The administrator's."""
        self.manager = manager
        self.operator = operator
        self.faults = faults
        """What the operator's own requests go through."""
        self._log = log

    @property
    def errors(self) -> list[Exception]:
        """What the operator's code raised and nobody caught, oldest first: in reconcilers, mappings, webhooks.

        Errors of `kubewright.errors` are not among them: a request that fails is tried again, and `Terminal` is an
        answer. The first hundred are kept.
        """
        return list(self._log.errors)

    @property
    def forbidden(self) -> list[str]:
        """The messages with which RBAC denied requests of the operator, each once."""
        return list(self.faults.forbidden)

    async def until_cached(
        self,
        kind: type[K],
        name: str | ObjectKey,
        predicate: Callable[[K | None], object],
        *,
        namespace: str | None = None,
        scope: Scope | None = None,
        timeout: float = 30.0,
    ) -> None:
        """Return once `predicate` is true of the object in the operator's cache; None stands for no object.

        The cache is behind the server. Wait like this before a test relies on something that reads the cache and writes
        nothing by which one could tell, such as a webhook. `scope` is the one in which the operator watches the kind,
        if it declares one.
        """
        cache = self.manager.cache
        assert isinstance(cache, Cache)
        key = key_in(self.client, kind, name, namespace)
        changed = asyncio.Event()
        with cache.use(kind, scope=scope) as informer:
            subscription = informer.subscribe(lambda _: changed.set())
            limit = TimeLimit(timeout)
            try:
                async with limit:
                    await subscription.wait_for_sync()
                    while not predicate(informer.store.get(key)):
                        changed.clear()
                        await changed.wait()
            except TimeoutError:
                shown = informer.store.get(key)
                seen = "no such object" if shown is None else f"\n{yaml.dump(to_tree(shown))}"
                raise AssertionError(
                    f"{kind.__name__} {key} is not as expected in the cache after {limit}; it holds {seen}"
                    f"{shown_logs()}"
                ) from None
            finally:
                subscription.close()

    async def idle(self, *, timeout: float = 30.0) -> None:
        """Return once no reconcile is running or queued; those to come with `requeue_after` are scheduled then.

        A status can be seen before the reconcile that wrote it has returned. A test that advances a virtual clock in
        between does so before that reconcile has asked for its requeue. Events that the operator has not received yet
        may start the next reconcile at any time.
        """
        controllers = self.manager.controllers
        limit = TimeLimit(timeout)
        try:
            async with limit:
                while any(len(each.queue) or each.queue.processing() for each in controllers):
                    for each in controllers:
                        await each.queue.idle()
        except TimeoutError:
            busy = [f"{each.name} {key}" for each in controllers for key in each.queue.processing()]
            raise AssertionError(
                f"the operator is not idle after {limit}: {', '.join(busy) or 'no worker takes what is queued'}"
                f"{shown_logs()}"
            ) from None


@asynccontextmanager
async def running(
    *operators: str | Operator | Declaration[Any] | WebhookDeclaration | type,
    on: Cluster,
    webhooks: bool = True,
    admin: bool = False,
    clock: Clock | None = None,
    scopes: Mapping[type[KubeObject], Scope] | None = None,
    expected_errors: Iterable[type[Exception]] = (),
    **options: Any,
) -> AsyncIterator[RunningOperator]:
    """Run an operator, given as its package, folder or loaded, or as controllers and webhooks, until the block ends.

    If it fails, at its start or later, the block is cancelled, and the cause is raised instead. `admin` gives it all
    rights. `clock` and `scopes` are the manager's: with `Scope(resync=0.1)` it reconciles all objects ten times a
    second. An exception of the operator's code fails the test when the block ends, unless it is one of
    `expected_errors`. Other arguments are those of `ManagerOptions`; they win over what the operator says below
    `setup_with_manager`, no port is opened unless one asks for it here, and options from the environment do not count.
    The CRDs, roles and objects stay in the cluster.
    """
    found = _loaded(operators)
    if not isinstance(on, Cluster):
        raise ConfigError(f"running(on=...) takes a cluster, as in Cluster.embedded(), and was given {on!r:.100}")
    config = on.config
    async with connect(config, field_manager=_MANAGER) as client:
        await remove_dead(client)
        local = _local_webhooks(found, client, config) if webhooks and found.webhooks else None
        if local is not None:
            await local.release_conversions()
        # A large schema takes a while: the cluster, which may be on this loop, goes on meanwhile.
        crds = await asyncio.to_thread(operator_crds, found, webhooks=webhooks)
        await install_crds(client, *crds.values())
        await _grant(client, found)
        if not admin:
            config = replace(config, credentials=StaticToken(await _token(client, found)))
        wire = FaultyTransport(default_transport(config))
        log = OperatorLog(found.name)
        async with Client(RetryingTransport(wire), namespace=found.namespace, field_manager=found.name) as own:
            manager = _manager(found, own, local, clock=clock, scopes=scopes, options=options)
            log.follow(manager.controllers)
            with log.kept():
                async with (
                    _converting(local),
                    _advancing_at_end(clock) as ending,
                    _at_work(manager, log),
                    _cancelled_on_failure(manager),
                ):
                    try:
                        if webhooks and found.webhooks:
                            await _until_webhooks_in_effect(client)
                        yield RunningOperator(client=client, manager=manager, operator=found, faults=wire, log=log)
                    finally:
                        ending.set()
        if webhooks and found.webhooks:
            with suppress(TransportError):  # the test has stopped the server, too
                await _until_webhooks_in_effect(client)
        if wire.forbidden:
            raise AssertionError(
                f"the roles of {found.name} do not allow what it asked for: {'; '.join(wire.forbidden)}. "
                "Declare it with `rbac(...)` or `owns`, then run `kubewright generate`"
            )
        if raised := log.unexpected(tuple(expected_errors)):
            stacks = "\n".join(stack_of(error) for error in raised)
            raise AssertionError(
                f"the code of {found.name} raised what nobody caught; if a test means it to, name the class in "
                f"expected_errors=[...]\n{stacks}"
            ) from raised[0]


@asynccontextmanager
async def _at_work(manager: Manager, log: OperatorLog) -> AsyncIterator[None]:
    """The manager, whose tasks log as the operator; the test, in the same task as the start, does not."""
    with log.speaking():
        await manager.__aenter__()
    try:
        yield
    except BaseException as error:
        await manager.__aexit__(type(error), error, error.__traceback__)
        raise
    await manager.__aexit__(None, None, None)


@asynccontextmanager
async def _converting(local: LocalWebhooks | None) -> AsyncIterator[None]:
    """The manager runs `local` after its caches, which may have to list what is stored in another version."""
    if local is None:
        yield
        return
    try:
        await local.take_conversions()
        yield
    finally:
        with suppress(TransportError):  # the test has stopped the server, too
            await local.restore_conversions()


@asynccontextmanager
async def _advancing_at_end(clock: Clock | None) -> AsyncIterator[asyncio.Event]:
    """Once the event is set, a virtual clock advances with the machine's.

    The manager gives up on a reconcile that never returns when its grace period is over, and nobody else would advance
    the clock by then.
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


@asynccontextmanager
async def _cancelled_on_failure(manager: Manager) -> AsyncIterator[None]:
    """A test that waits for an operator that has ended would wait in vain: end it, and raise why.

    The block of a fixture runs in a task that is over by then; there the cause is raised when the block ends.
    """
    block = asyncio.current_task()
    assert block is not None
    failure: Exception | None = None
    left = False

    async def watch() -> None:
        nonlocal failure
        try:
            await manager.wait()
        except Exception as error:
            if not left:
                failure = error
                block.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    except BaseException as error:
        if failure is not None and block is asyncio.current_task():
            others = block.uncancel()
            if isinstance(error, asyncio.CancelledError) and not others:
                raise failure from None
        raise
    finally:
        left = True
        await cancel_and_wait(watching)


def _loaded(given: Sequence[str | Operator | Declaration[Any] | WebhookDeclaration | type]) -> Operator:
    if len(given) == 1 and isinstance(given[0], str | Operator):
        return load_operator(given[0]) if isinstance(given[0], str) else given[0]
    for item in given:
        if isinstance(item, str | Operator):
            raise ConfigError("running() takes one operator, or its controllers and webhooks, but not both")
        if not (isinstance(item, Declaration) or is_webhook(item)):
            shown = getattr(item, "__name__", None) or repr(item)
            raise ConfigError(f"{shown} is no controller and no webhook; write @controller(Kind) above it")
    if not given:
        raise ConfigError("running() needs something to run: an operator's package, or its controllers and webhooks")
    return operator_of(*cast("Sequence[Declaration[Any] | WebhookDeclaration]", given))


def _local_webhooks(operator: Operator, admin: Client, config: Config) -> LocalWebhooks:
    from kubewright.webhooks.registration.local import LocalWebhooks

    (port,) = free_ports(1)
    # As the administrator: the roles of the operator need no right to write webhook configurations.
    return LocalWebhooks(
        admin, operator.webhooks, operator=operator.name, port=port, server=config.server, address="127.0.0.1"
    )


def _manager(
    operator: Operator,
    own: Client,
    local: LocalWebhooks | None,
    *,
    clock: Clock | None,
    scopes: Mapping[type[KubeObject], Scope] | None,
    options: dict[str, Any],
) -> Manager:
    here = {"name": operator.name, "health_address": "0", "metrics_address": "0", "debug_address": "0"}
    given: Tree = {**operator.option_defaults, **here, **options}
    if local is None:
        return Manager(
            *operator.runnables,
            client=own,
            options=ManagerOptions.load(environ={}, **given | {"webhooks": False}),
            namespaces=operator.namespaces,
            scopes=scopes,
            clock=clock,
        )
    return Manager(
        *operator.runnables,
        local,
        client=own,
        options=ManagerOptions.load(environ={}, **given | {"webhook_host": "127.0.0.1", "webhook_port": local.port}),
        namespaces=operator.namespaces,
        scopes=scopes,
        certificates=local.certificates,
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
    limit = TimeLimit(_TIMEOUT)
    try:
        async with limit:
            for review in _reviews(trees):
                await _until_allowed(client, review)
    except TimeoutError:
        raise ClusterError(
            f"the roles of {operator.name} were applied, but they were not in effect within {limit}; "
            "see kubectl auth can-i --list"
        ) from None


async def _until_allowed(client: Client, review: Tree) -> None:
    """The authorizer learns of roles a moment after they were written; what it denies till then proves nothing."""
    while True:
        answer = await client.create(from_tree(SubjectAccessReview, {"spec": review}))
        if answer.status is not None and answer.status.allowed:
            return
        await asyncio.sleep(_PAUSE)


def _reviews(trees: list[Tree]) -> Iterator[Tree]:
    """For each rule that is bound to an account, a SubjectAccessReview that is allowed once the rule is in effect."""
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


async def _until_webhooks_in_effect(client: Client) -> None:
    """The server learns of webhook configurations a moment after they were written, but in that order.

    So this registers one more of each kind that nobody serves. Once the server calls it, it knows those before it.
    """
    from kubewright.webhooks.registration.targets import KINDS

    for kind in KINDS.values():
        marker = await client.create(from_tree(kind, _marker(f"{_MANAGER}-{uuid4().hex[:10]}")))
        limit = TimeLimit(_TIMEOUT)
        try:
            async with limit:
                await _until_called(client, marker.metadata.name)
        except TimeoutError:
            raise ClusterError(
                f"a {kind.kind} was registered, but it was not in effect within {limit}; see its log"
            ) from None
        finally:
            await client.delete(marker)


def _marker(name: str) -> Tree:
    """A configuration that matches only a Lease with its label, which nobody creates."""
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


async def _until_called(client: Client, name: str) -> None:
    """Return when the server calls the webhook of a marker for a Lease with its label."""
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
