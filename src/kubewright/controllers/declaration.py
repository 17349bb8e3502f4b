"""@controller: what a controller watches and how it reconciles, declared once, at the reconciler.

    @controller(Cache, owns=[Deployment])
    async def reconcile(cache: Cache, ctx: Context) -> Result | None: ...

    @controller(Cache, owns=[Deployment], watches=[Watch(ConfigMap, to_caches)], concurrency=4)
    class CacheController:
        async def reconcile(self, cache: Cache, ctx: Context) -> Result | None: ...
        async def finalize(self, cache: Cache, ctx: Context) -> Result | None: ...     # adds a finalizer
        async def setup(self, controller: Controller) -> None: ...           # before the first reconcile
        async def teardown(self, controller: Controller) -> None: ...        # after the last, if setup has returned

The decorator only records; it starts nothing and registers nowhere. The function stays callable, so a unit test calls
it like any other. A manager makes a `Controller` from the declaration; `generate.rbac` reads it for roles.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar, final

import msgspec

from kubewright._base.option_names import with_option_names
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.changes import Change
from kubewright.cache.scope import Scope
from kubewright.controllers.mapping import ByIndex, Mapper, ToAll
from kubewright.controllers.option_checks import (
    check_controller_name,
    check_finalizer,
    check_functions,
    check_mapper,
    check_predicate,
    check_rate_limit,
    check_seconds,
    check_source,
    check_whole_number,
    checked_kind,
    checked_signature,
)
from kubewright.controllers.predicates import FACTORIES, Predicate, any_version, spec_or_metadata_changed
from kubewright.controllers.reconcile import Result
from kubewright.controllers.sources import Source
from kubewright.errors import ConfigError

__all__ = ("Declaration", "Owned", "SetUp", "Watch", "controller")

_MIN_BACKOFF: Final = 0.005
_METRIC: Final = re.compile(r"[a-z_][a-z0-9_]*")

K = TypeVar("K", bound=KubeObject)
Reconcile = Callable[[Any, Any], Awaitable[Result | None] | Result | None]
Finalize = Callable[[Any, Any], Awaitable[Result | None] | Result | None]
SetUp = Callable[[Any], Awaitable[None] | None]


@final
class Owned(msgspec.Struct, frozen=True):
    """A kind of child, for `owns` of `@controller`: a change of a child triggers a reconcile of its owner."""

    kind: type[KubeObject]
    """The kind of the children."""
    when: Predicate = any_version
    """Which changes of a child trigger a reconcile; by default all, of its status as well."""
    controller_only: bool = True
    """Whether only the owner that is the child's controller is reconciled; False: every owner of the kind."""
    indexes: Mapping[str, Callable[[Any], Iterable[str]]] = {}
    """Indexes of the children in the cache, as `indexes` of `@controller` for the kind itself."""
    scope: Scope | None = None
    """What this controller watches and reads of the kind; by default all in the namespaces that the controller's own
    scope names, since a child is in the namespace of its owner, and where it names none, the manager's scope of the
    kind."""

    def __post_init__(self) -> None:
        _check_other("Owned", self)


@final
class Watch(msgspec.Struct, frozen=True):
    """Another kind, for `watches` of `@controller`: a change of its objects triggers a reconcile of others."""

    kind: type[KubeObject]
    """The kind that is watched."""
    mapper: Callable[[Change[Any]], Iterable[ObjectKey]] | ByIndex | ToAll
    """Returns the keys to reconcile for a change; see `for_each`, `by_index` and `to_all`."""
    when: Predicate = any_version
    """Which changes reach the mapper; by default all, of the status as well."""
    indexes: Mapping[str, Callable[[Any], Iterable[str]]] = {}
    """Indexes of this kind in the cache, as `indexes` of `@controller` for the kind itself."""
    scope: Scope | None = None
    """What this controller watches and reads of the kind; by default the manager's scope of the kind."""

    def __post_init__(self) -> None:
        _check_other("Watch", self)
        check_mapper(f"Watch({self.kind.__name__})", self.mapper)


@final
class Declaration(Generic[K]):
    """A controller as declared. Calling it calls the reconciler."""

    def __init__(
        self,
        kind: type[K],
        target: Any,
        *,
        name: str,
        owns: tuple[Owned, ...],
        watches: tuple[Watch, ...],
        when: Predicate,
        concurrency: int,
        timeout: float | None,
        needs_leader: bool,
        finalizer: str | None,
        field_manager: str | None,
        rate_limit: tuple[float, int] | None,
        max_backoff: float,
        sources: tuple[Source, ...],
        deleting: bool,
        indexes: Mapping[str, Callable[[K], Iterable[str]]],
        gauges: Mapping[str, Callable[[K], float]],
        scope: Scope | None,
    ) -> None:
        self.kind = kind
        self.scope = scope
        self.name = name
        elsewhere = {watch.kind for watch in watches if watch.scope is None}
        self.owns = tuple(owned if owned.kind in elsewhere else _within(owned, kind, scope) for owned in owns)
        self.watches = watches
        self.when = when
        self.concurrency = concurrency
        self.timeout = timeout
        self.needs_leader = needs_leader
        self.field_manager = field_manager or name
        self.rate_limit = rate_limit
        self.max_backoff = max_backoff
        self.sources = sources
        self.deleting = deleting
        self.indexes = dict(indexes)
        self.gauges = dict(gauges)
        self.reconcile: Reconcile
        self.finalize: Finalize | None = None
        self.setup: SetUp | None = None
        self.teardown: SetUp | None = None
        self._bind(target)
        for watch in watches:
            if isinstance(watch.mapper, ByIndex) and watch.mapper.index not in self.indexes:
                raise ConfigError(
                    f"controller {name}: {watch.kind.__name__} is mapped by the index {watch.mapper.index!r}, which "
                    "does not exist; add it to indexes"
                )
        for metric in gauges:
            if not _METRIC.fullmatch(metric):
                raise ConfigError(f"controller {name}: {metric!r} is no name for a metric; write it like ready_pods")
        if deleting and self.finalize is not None:
            raise ConfigError(f"controller {name}: with deleting=True reconcile handles deletion; leave finalize out")
        group = definition_of(kind).gvk.group or "kubewright.io"
        self.finalizer = finalizer or f"{group}/{name}"
        if finalizer is not None and self.finalize is None:
            raise ConfigError(
                f"controller {name}: finalizer={finalizer!r} does nothing without a method finalize; write a class "
                "that has one"
            )
        self.__doc__ = getattr(target, "__doc__", None)
        self.__name__ = getattr(target, "__name__", name)
        self.__module__ = getattr(target, "__module__", __name__)

    def _bind(self, target: Any) -> None:
        if not inspect.isclass(target):
            self.reconcile = checked_signature(f"controller {self.name}", target)
            return
        try:
            reconciler: Any = target()
        except TypeError as exc:
            raise ConfigError(f"controller {self.name}: {target.__name__}() must need no arguments: {exc}") from exc
        if not callable(getattr(reconciler, "reconcile", None)):
            raise ConfigError(f"controller {self.name}: {target.__name__} needs a reconcile method")
        where = f"controller {self.name}"
        self.reconcile = checked_signature(where, reconciler.reconcile)
        if (finalize := getattr(reconciler, "finalize", None)) is not None:
            self.finalize = checked_signature(where, finalize)
        if (setup := getattr(reconciler, "setup", None)) is not None:
            self.setup = checked_signature(where, setup, gets="the Controller", form="controller")
        if (teardown := getattr(reconciler, "teardown", None)) is not None:
            self.teardown = checked_signature(where, teardown, gets="the Controller", form="controller")

    def __call__(self, obj: K, ctx: Any) -> Any:
        return self.reconcile(obj, ctx)

    @property
    def kinds(self) -> tuple[type[KubeObject], ...]:
        """Every kind that the controller watches, its own first."""
        return tuple(
            dict.fromkeys((self.kind, *(owned.kind for owned in self.owns), *(watch.kind for watch in self.watches)))
        )

    @property
    def scopes(self) -> dict[type[KubeObject], tuple[Scope | None, ...]]:
        """The scopes in which each of these kinds is watched; None is the manager's scope of the kind."""
        found: dict[type[KubeObject], dict[Scope | None, None]] = {self.kind: {self.scope: None}}
        others: tuple[Owned | Watch, ...] = (*self.owns, *self.watches)
        for other in others:
            found.setdefault(other.kind, {})[other.scope] = None
        return {kind: tuple(scopes) for kind, scopes in found.items()}

    def __repr__(self) -> str:
        return f"<controller {self.name} for {self.kind.__name__}>"


def _within(owned: Owned, owner: type[KubeObject], scope: Scope | None) -> Owned:
    """A kind of child in the namespaces of its owners, unless it says itself where it is watched."""
    if scope is None or not scope.namespaces or owned.scope is not None:
        return owned
    if owned.kind is owner:
        return msgspec.structs.replace(owned, scope=scope)
    if not (definition_of(owner).namespaced and definition_of(owned.kind).namespaced):
        return owned
    return msgspec.structs.replace(owned, scope=Scope(namespaces=scope.namespaces))


@with_option_names
def controller(
    kind: type[K],
    *,
    name: str | None = None,
    owns: Sequence[type[KubeObject] | Owned] = (),
    watches: Sequence[tuple[type[KubeObject], Mapper | ByIndex | ToAll] | Watch] = (),
    when: Predicate = spec_or_metadata_changed,
    concurrency: int = 1,
    timeout: float | None = None,
    needs_leader: bool = True,
    finalizer: str | None = None,
    field_manager: str | None = None,
    rate_limit: tuple[float, int] | None = None,
    max_backoff: float = 1000.0,
    sources: Sequence[Source] = (),
    deleting: bool = False,
    indexes: Mapping[str, Callable[[K], Iterable[str]]] | None = None,
    gauges: Mapping[str, Callable[[K], float]] | None = None,
    scope: Scope | None = None,
) -> Callable[[Any], Declaration[K]]:
    """Declare a controller for a kind, on an async or plain function, or on a class with `reconcile`.

    The methods of a class, each async or plain, are:

    - `reconcile(self, obj: Kind, ctx: Context) -> Result | None`
    - `finalize(self, obj: Kind, ctx: Context) -> Result | None`, for an object that is being deleted; it brings the
      finalizer
    - `setup(self, controller: Controller) -> None`, once before the first reconcile, when all watches are in sync
    - `teardown(self, controller: Controller) -> None`, once after the last reconcile, if `setup` has returned

    The class is made without arguments, once, when the module is imported.

    Args:
        kind: The class of the objects that are reconciled.
        name: The controller's name in logs, metrics and events; by default the kind in lower case. No two controllers
            of an operator have the same.
        owns: Kinds of children, as classes or as `Owned`. A change of a child triggers a reconcile of its owner.
        watches: Other kinds, as pairs of a class and a mapper or as `Watch`. The mapper returns the keys to reconcile.
        when: Which changes of the kind itself trigger a reconcile. By default a change of spec or metadata, a deletion
            and a resync, but not a change of the status alone.
        concurrency: How many objects are reconciled at a time. One object is never reconciled twice at once.
        timeout: After how many seconds a reconcile is cancelled and retried with back-off; by default never.
        needs_leader: Whether the controller runs only in the replica that is the leader.
        finalizer: The name of the finalizer for a class with a `finalize` method; by default `<group>/<name>`.
        field_manager: The manager of the fields that `ctx.apply` sends; by default the controller's name. Keep it when
            you rename a controller: fields of the old manager would stay.
        rate_limit: `(qps, burst)` of the retries of all objects together; by default only each object's own back-off
            counts.
        max_backoff: The longest wait, in seconds, of an object that fails again and again. The back-off begins with
            5 ms and doubles.
        sources: Other sources of keys: a `Channel`, a `Timer`, or anything with the methods of `Source`.
        deleting: Whether an object that is being deleted is reconciled, for a controller that ends the life of objects
            without a finalizer of its own, such as a kubelet. Not together with `finalize`.
        indexes: Indexes of the kind in the cache: functions that return the values of an object, by name. `by_index`
            maps through an index, `ctx.client.list(..., index=(name, value))` reads it.
        gauges: Functions that return a number of an object, by the metric that shows it. Called after each
            reconcile that does not fail; the value is removed with the object.
        scope: What this controller watches and reads of the kind; by default the manager's scope of the kind.
    """
    definition = definition_of(checked_kind(kind))
    chosen = name or definition.kind.lower()
    check_controller_name(chosen)
    where = f"controller {chosen}"
    children, others = _as_tuple(where, "owns", owns), _as_tuple(where, "watches", watches)
    outside = _as_tuple(where, "sources", sources)
    check_predicate(where, when, factories=FACTORIES)
    check_whole_number(where, "concurrency", concurrency)
    if timeout is not None:
        check_seconds(where, "timeout", timeout)
    check_seconds(where, "max_backoff", max_backoff, least=_MIN_BACKOFF)
    if rate_limit is not None:
        check_rate_limit(where, rate_limit)
    if finalizer is not None:
        check_finalizer(where, finalizer)
    for source in outside:
        check_source(where, source)
    check_functions(where, "indexes", indexes or {})
    check_functions(where, "gauges", gauges or {})
    _check_scope(where, scope)

    def declare(target: Any) -> Declaration[K]:
        return Declaration(
            kind,
            target,
            name=chosen,
            owns=tuple(item if isinstance(item, Owned) else Owned(checked_kind(item)) for item in children),
            watches=tuple(_watch(where, item) for item in others),
            when=when,
            concurrency=concurrency,
            timeout=timeout,
            needs_leader=needs_leader,
            finalizer=finalizer,
            field_manager=field_manager,
            rate_limit=rate_limit,
            max_backoff=max_backoff,
            sources=outside,
            deleting=deleting,
            indexes=indexes or {},
            gauges=gauges or {},
            scope=scope,
        )

    return declare


def _as_tuple(where: str, option: str, given: object) -> tuple[Any, ...]:
    pair = option == "watches" and isinstance(given, tuple) and bool(given) and isinstance(given[0], type)
    if isinstance(given, type | str) or not isinstance(given, Iterable) or pair:
        raise ConfigError(f"{where}: {option} takes a list; write {option}=[...] around what is in it")
    return tuple(given)


def _watch(where: str, given: object) -> Watch:
    if isinstance(given, Watch):
        return given
    if isinstance(given, tuple | list) and len(given) == 2:
        return Watch(*given)
    kind = checked_kind(given[0] if isinstance(given, tuple | list) and given else given, where="watches")
    raise ConfigError(
        f"{where}: watches has {kind.__name__} without a mapper, which says what to reconcile for a change; write "
        f"watches=[({kind.__name__}, mapper)] with for_each(...) or by_index(...); a kind of children belongs in owns"
    )


def _check_other(what: str, given: Owned | Watch) -> None:
    """What `Owned` and `Watch` have in common."""
    where = f"{what}({checked_kind(given.kind, where=what).__name__})"
    check_predicate(where, given.when, factories=FACTORIES)
    check_functions(where, "indexes", given.indexes)
    _check_scope(where, given.scope)


def _check_scope(where: str, scope: object) -> None:
    if scope is not None and not isinstance(scope, Scope):
        raise ConfigError(f"{where}: scope is {scope!r}; write it like scope=Scope(namespaces=('shop',))")
