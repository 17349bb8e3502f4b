"""@controller: what a controller watches and how it runs, said once, beside the code that does the work.

    @controller(Cache, owns=[Deployment])
    async def reconcile(cache: Cache, ctx: Context) -> Result | None: ...

    @controller(Cache, owns=[Deployment], watches=[Watch(ConfigMap, to_caches)], concurrency=4)
    class CacheController:
        async def reconcile(self, cache: Cache, ctx: Context) -> Result | None: ...
        async def finalize(self, cache: Cache, ctx: Context) -> None: ...     # brings a finalizer with it
        async def setup(self, controller: Controller) -> None: ...           # before the first reconcile

The decorator only records; it starts nothing and registers nowhere. The function stays callable, so a unit test calls
it like any other. A manager turns the declaration into a running `Controller`; generators read it for RBAC.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar, final

import msgspec

from kubewright.api.names import ObjectKey, dns1123_label_errors
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.changes import Change
from kubewright.controllers.mapping import ByIndex, Mapper
from kubewright.controllers.predicates import Predicate, any_version, worth_a_look
from kubewright.controllers.reconcile import Result
from kubewright.controllers.sources import Source
from kubewright.errors import ConfigError

__all__ = ("Declaration", "Owned", "Watch", "controller")

_METRIC: Final = re.compile(r"[a-z_][a-z0-9_]*")

K = TypeVar("K", bound=KubeObject)
Reconcile = Callable[[Any, Any], Awaitable[Result | None] | Result | None]
Finalize = Callable[[Any, Any], Awaitable[None] | None]
SetUp = Callable[[Any], Awaitable[None] | None]


@final
class Owned(msgspec.Struct, frozen=True):
    """A kind of child; its changes wake the owner."""

    kind: type[KubeObject]
    when: Predicate = any_version
    controller_only: bool = True
    """False to wake every owner, not only the managing one."""


@final
class Watch(msgspec.Struct, frozen=True):
    """Another kind whose changes matter, and which objects they concern."""

    kind: type[KubeObject]
    mapper: Callable[[Change[Any]], Iterable[ObjectKey]] | ByIndex
    when: Predicate = any_version


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
        sources: tuple[Source, ...],
        deleting: bool,
        indexes: Mapping[str, Callable[[K], Iterable[str]]],
        gauges: Mapping[str, Callable[[K], float]],
    ) -> None:
        self.kind = kind
        self.name = name
        self.owns = owns
        self.watches = watches
        self.when = when
        self.concurrency = concurrency
        self.timeout = timeout
        self.needs_leader = needs_leader
        self.field_manager = field_manager or name
        self.rate_limit = rate_limit
        self.sources = sources
        self.deleting = deleting
        self.indexes = dict(indexes)
        self.gauges = dict(gauges)
        self.reconcile: Reconcile
        self.finalize: Finalize | None = None
        self.setup: SetUp | None = None
        self._bind(target)
        for watch in watches:
            if isinstance(watch.mapper, ByIndex) and watch.mapper.index not in self.indexes:
                raise ConfigError(
                    f"controller {name}: {watch.kind.__name__} is mapped by the index {watch.mapper.index!r}, which "
                    "there is not; add it to indexes"
                )
        for metric in gauges:
            if not _METRIC.fullmatch(metric):
                raise ConfigError(f"controller {name}: {metric!r} is no name for a metric; write it like ready_pods")
        if deleting and self.finalize is not None:
            raise ConfigError(f"controller {name}: with deleting=True reconcile sees to deletion; leave finalize out")
        group = definition_of(kind).gvk.group or "kubewright.io"
        self.finalizer = finalizer or f"{group}/{name}"
        self.__doc__ = getattr(target, "__doc__", None)
        self.__name__ = getattr(target, "__name__", name)
        self.__module__ = getattr(target, "__module__", __name__)

    def _bind(self, target: Any) -> None:
        if not inspect.isclass(target):
            self.reconcile = target
            return
        try:
            worker: Any = target()
        except TypeError as exc:
            raise ConfigError(f"controller {self.name}: {target.__name__}() must need no arguments: {exc}") from exc
        if not callable(getattr(worker, "reconcile", None)):
            raise ConfigError(f"controller {self.name}: {target.__name__} needs a reconcile method")
        self.reconcile = worker.reconcile
        self.finalize = getattr(worker, "finalize", None)
        self.setup = getattr(worker, "setup", None)

    def __call__(self, obj: K, ctx: Any) -> Any:
        return self.reconcile(obj, ctx)

    @property
    def kinds(self) -> tuple[type[KubeObject], ...]:
        """Every kind that is watched: its own first."""
        return tuple(
            dict.fromkeys((self.kind, *(owned.kind for owned in self.owns), *(watch.kind for watch in self.watches)))
        )

    def __repr__(self) -> str:
        return f"<controller {self.name} for {self.kind.__name__}>"


def controller(
    kind: type[K],
    *,
    name: str | None = None,
    owns: Sequence[type[KubeObject] | Owned] = (),
    watches: Sequence[tuple[type[KubeObject], Mapper | ByIndex] | Watch] = (),
    when: Predicate = worth_a_look,
    concurrency: int = 1,
    timeout: float | None = None,
    needs_leader: bool = True,
    finalizer: str | None = None,
    field_manager: str | None = None,
    rate_limit: tuple[float, int] | None = None,
    sources: Sequence[Source] = (),
    deleting: bool = False,
    indexes: Mapping[str, Callable[[K], Iterable[str]]] | None = None,
    gauges: Mapping[str, Callable[[K], float]] | None = None,
) -> Callable[[Any], Declaration[K]]:
    """Declare a controller for a kind, on an async or plain function, or on a class with `reconcile`.

    `owns` are kinds of children: their changes wake the owner. `watches` pairs another kind with a mapper. `when`
    says which changes of the kind itself matter. `concurrency` objects are worked on at a time, one object never
    twice at once; `timeout` seconds end a single run. `rate_limit=(qps, burst)` limits all runs together.
    `field_manager` names the owner of applied fields, by default the controller's name. `sources` are others that
    wake it: a `Channel`, a `Timer`. An object that is being deleted is reconciled only with `deleting=True`, for who
    ends its life, such as a kubelet, and holds it by other means than a finalizer. `indexes` are ways to find objects
    of the kind in the cache: `by_index` wakes through one, `ctx.client.list(..., index=(name, value))` asks it.
    `gauges` are numbers of an object, by the metrics that show them: taken after each run, gone with the object.
    """
    definition = definition_of(kind)
    chosen = name or definition.kind.lower()
    if problems := dns1123_label_errors(chosen):
        raise ConfigError(f"controller name {chosen!r} cannot be used: {problems[0]}")
    if concurrency < 1:
        raise ConfigError(f"controller {chosen}: concurrency is {concurrency}; at least 1 object must be worked on")

    def declare(target: Any) -> Declaration[K]:
        return Declaration(
            kind,
            target,
            name=chosen,
            owns=tuple(item if isinstance(item, Owned) else Owned(item) for item in owns),
            watches=tuple(item if isinstance(item, Watch) else Watch(*item) for item in watches),
            when=when,
            concurrency=concurrency,
            timeout=timeout,
            needs_leader=needs_leader,
            finalizer=finalizer,
            field_manager=field_manager,
            rate_limit=rate_limit,
            sources=tuple(sources),
            deleting=deleting,
            indexes=indexes or {},
            gauges=gauges or {},
        )

    return declare
