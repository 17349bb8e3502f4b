"""Cache: all informers of one cluster; made on demand, run together, shared by all users of a kind.

    cache = Cache(client, scopes={Pod: Scope(labels="app=web")})
    with cache.use(Pod) as informer:                  # the watch runs as long as somebody uses it
        informer.subscribe(handler)
        ...
    pod = cache.reader.get(Pod, "web-0", namespace="shop")

`run` owns every task. An informer that is used while the cache runs starts at once; the last user to release it stops
its watch and drops its store. `cached_client` records the server's answers to its writes here (`record_write`,
`record_deletion`), which is why reads see them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar, cast, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.deadline import Deadline
from kubewright.cache.informer import Informer
from kubewright.cache.observer import CacheObserver
from kubewright.cache.problems import Problem
from kubewright.cache.reader import CacheReader
from kubewright.cache.scope import Scope
from kubewright.client.client import Client
from kubewright.errors import ConfigError, KubewrightError, RequestTimeout

__all__ = ("Cache",)

K = TypeVar("K", bound=KubeObject)
_Key = tuple[type[KubeObject], Scope]
_DEFAULT: tuple[Scope | None, ...] = (None,)


class _Use:
    """An informer, the number of its users, and the task that runs it."""

    __slots__ = ("count", "informer", "task")

    def __init__(self, informer: Informer[Any]) -> None:
        self.informer = informer
        self.count = 0
        self.task: asyncio.Task[None] | None = None


@final
class Cache:
    """The local copies of the kinds in use."""

    def __init__(
        self,
        client: Client,
        *,
        scopes: Mapping[type[KubeObject], Scope] | None = None,
        default_scope: Scope = Scope(),  # noqa: B008 - frozen
        clock: Clock = SystemClock(),  # noqa: B008 - has no state
        network_clock: Clock | None = None,
        rng: Random | None = None,
        observer: CacheObserver | None = None,
    ) -> None:
        """`network_clock` times the waits for the server, if it is another than the clock of everything else."""
        self.reader = CacheReader(self._in_use)
        self._client = client
        self._scopes = dict(scopes or {})
        self._default_scope = default_scope
        self._clock = clock
        self._network_clock = network_clock or clock
        self._rng = rng or Random()
        self._observer = observer or CacheObserver()
        self._keys: dict[type[KubeObject], _Key] = {}
        self._uses: dict[_Key, _Use] = {}
        self._group: asyncio.TaskGroup | None = None

    # --- informers ---

    def informer(self, kind: type[K], *, scope: Scope | None = None) -> Informer[K]:
        """The informer of a kind, in the cache's scope of the kind unless another is given.

        It runs until you `release` it; `use` does both.
        """
        key = self._key(kind, scope)
        use = self._uses.get(key)
        if use is None:
            informer = Informer(
                self._client,
                kind,
                key[1],
                clock=self._clock,
                network_clock=self._network_clock,
                rng=self._rng,
                observer=self._observer,
            )
            use = self._uses[key] = _Use(informer)
            self._start(use)
        use.count += 1
        return cast("Informer[K]", use.informer)

    def release(self, informer: Informer[Any]) -> None:
        """Give an informer back. The last user to do so ends its watch."""
        key = (informer.kind, informer.scope)
        use = self._uses.get(key)
        if use is None or use.informer is not informer:
            return
        use.count -= 1
        if use.count > 0:
            return
        del self._uses[key]
        if use.task is not None:
            use.task.cancel()
        self._observer.on_size(informer.kind, 0, 0)

    @contextmanager
    def use(self, kind: type[K], *, scope: Scope | None = None) -> Iterator[Informer[K]]:
        """The informer of a kind, for as long as the block runs."""
        informer = self.informer(kind, scope=scope)
        try:
            yield informer
        finally:
            self.release(informer)

    def informers(self) -> tuple[Informer[Any], ...]:
        """Every informer in use."""
        return tuple(use.informer for use in self._uses.values())

    def watches(self, kind: type[KubeObject]) -> bool:
        """Whether a kind is watched and in sync, so that `reader` can answer for it."""
        return self.reader.watches(kind)

    def reader_in(self, scopes: Mapping[type[KubeObject], Sequence[Scope | None]]) -> CacheReader:
        """A reader of some kinds in other scopes; None is the cache's scope of the kind.

        Several scopes of one kind have different namespaces, so that one informer answers each read.
        """
        return CacheReader(lambda kind: self._in_use(kind, scopes.get(kind, _DEFAULT)))

    def scope_of(self, kind: type[KubeObject], scope: Scope | None = None) -> Scope:
        """The scope of a kind with its namespaces resolved; the cache's scope of the kind unless another is given."""
        return self._key(kind, scope)[1]

    def namespaced(self, kind: type[KubeObject]) -> bool:
        """Whether a kind is namespaced. Of a kind that needs discovery this is known once it is watched."""
        definition = definition_of(kind)
        if definition.needs_discovery:
            for informer in self._informers_of(kind):
                return informer.namespaced
        return definition.namespaced

    # --- life ---

    async def run(self) -> None:
        """Run every informer until cancelled. Raises if one of them ends, which none should."""
        if self._group is not None:
            raise ConfigError("the cache is running already; run it once")
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for use in self._uses.values():
                    self._start(use)
                await asyncio.get_running_loop().create_future()
        except ExceptionGroup as failures:
            raise _first(failures) from failures
        finally:
            self._group = None
            for use in self._uses.values():
                use.task = None

    async def wait_for_sync(self, *kinds: type[KubeObject], timeout: float | None = None) -> None:
        """Returns when these kinds, or all in use, are in sync. RequestTimeout says which are not, and why."""
        for kind in kinds:
            if not self._in_use(kind):
                raise ConfigError(f"{kind.__name__} is not watched; enter cache.use({kind.__name__}) first")
        waiting = [informer for kind in kinds for informer in self._in_use(kind)] if kinds else list(self.informers())
        if timeout is None:
            await _all_in_sync(waiting)
            return
        try:
            async with Deadline(self._clock, timeout, "not in sync"):
                await _all_in_sync(waiting)
        except RequestTimeout:
            late = [informer for informer in waiting if not informer.synced]
            reasons = "; ".join(_why_not(informer) for informer in late)
            raise RequestTimeout(f"not in sync after {timeout:g} s: {reasons}") from None

    def problems(self) -> tuple[Problem, ...]:
        """Why kinds cannot be watched, each in a sentence."""
        return tuple(problem for informer in self.informers() for problem in informer.problems)

    # --- own writes ---

    def record_write(self, obj: KubeObject, *, own: bool = True) -> None:
        """Record the server's answer to a write of this process. Later reads are never older than that.

        The change of exactly this version is marked as own. Say `own=False` if the write may have changed nothing: the
        answer then has the version of somebody else's write.
        """
        if not obj.metadata.resource_version:
            # The answer to a deletion of an object that went away meanwhile: its last state, and no version.
            self.record_deletion(type(obj), obj.key, obj.metadata.uid)
            return
        definition = definition_of(type(obj))
        for informer in self._informers_of(type(obj)):
            # Metadata alone does not have the rest of the object.
            if not definition.metadata_only or definition_of(informer.kind).metadata_only:
                informer.record_write(obj, own=own)

    def record_deletion(
        self, obj_or_kind: KubeObject | type[KubeObject], key: ObjectKey | None = None, uid: str = ""
    ) -> None:
        """Record that this process has deleted an object, and nothing is left of it. Later reads do not find it."""
        version = ""
        if isinstance(obj_or_kind, KubeObject):
            metadata = obj_or_kind.metadata
            kind, key, uid, version = type(obj_or_kind), metadata.key, metadata.uid, metadata.resource_version
        else:
            kind = obj_or_kind
        if key is None:
            raise ConfigError(f"record_deletion of {kind.__name__}: name the object by its key, or give the object")
        for informer in self._informers_of(kind):
            informer.record_deletion(key, uid, version)

    # --- inside ---

    def _key(self, kind: type[KubeObject], scope: Scope | None) -> _Key:
        known = self._keys.get(kind) if scope is None else None
        if known is None:
            chosen = scope or self._scopes.get(kind, self._default_scope)
            namespaced = definition_of(kind).namespaced
            known = (kind, chosen.within(self._default_scope.namespaces, namespaced=namespaced))
            if scope is None:
                self._keys[kind] = known
        return known

    def _in_use(
        self, kind: type[KubeObject], scopes: Sequence[Scope | None] = _DEFAULT
    ) -> tuple[Informer[Any], ...]:  # hot
        """The informers of a kind in these scopes; none unless all of them are in use."""
        if len(scopes) == 1:
            use = self._uses.get(self._key(kind, scopes[0]))
            return (use.informer,) if use is not None else ()
        uses = [self._uses.get(key) for key in dict.fromkeys(self._key(kind, scope) for scope in scopes)]
        return () if None in uses else tuple(use.informer for use in uses if use is not None)

    def _informers_of(self, kind: type[KubeObject]) -> Iterator[Informer[Any]]:
        """Every informer of the same objects, by whatever class and in whatever scope."""
        gvk = definition_of(kind).gvk
        for (known, _), use in self._uses.items():
            if known is kind or definition_of(known).gvk == gvk:
                yield use.informer

    def _start(self, use: _Use) -> None:
        if self._group is not None:
            use.task = self._group.create_task(_run(use.informer), name=f"informer {use.informer.kind.__name__}")


async def _run(informer: Informer[Any]) -> None:
    try:
        await informer.run()
    except ExceptionGroup as failures:
        error = _first(failures)
        raise KubewrightError(f"the watch of {informer.kind.__name__} has ended unexpectedly: {error}") from error
    raise KubewrightError(f"the watch of {informer.kind.__name__} has ended unexpectedly")


def _first(failures: BaseExceptionGroup[Exception]) -> Exception:
    error: BaseException = failures
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, Exception)
    return error


async def _all_in_sync(informers: list[Informer[Any]]) -> None:
    for informer in informers:
        await informer.wait_for_sync()


def _why_not(informer: Informer[Any]) -> str:
    problem = informer.problem
    return problem.sentence if problem is not None else f"{informer.kind.__name__} is still being listed"
