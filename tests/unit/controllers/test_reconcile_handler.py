"""One reconcile after another, on a client with a single object: what it reads, what it writes, and its outcome."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from kubewright import ObjectKey, Resource, Spec, Status
from kubewright._base.logs import Logger
from kubewright._base.metrics import Metrics
from kubewright.api import copy_of
from kubewright.cache.changes import change_of
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, controller
from kubewright.controllers.memory import ControllerMemory
from kubewright.controllers.reconcile import Cause, Result
from kubewright.controllers.reconcile_handler import Outcome, ReconcileHandler
from kubewright.controllers.reconcile_state import ReconcileEnvironment
from kubewright.controllers.write_loops import WriteLoop
from kubewright.errors import Cause as StatusCause
from kubewright.errors import ConfigError, Conflict, Forbidden, NotFound, NotOwned, RetryAfter, ServerError, Terminal
from kubewright.k8s.core.v1 import ConfigMap, Namespace
from kubewright.testing.clock import VirtualClock
from kubewright.workqueue.item import Item

KEY = ObjectKey("shop", "web")
FINALIZER = "toys.example.io/toy"


class ToySpec(Spec):
    size: int = 1


class ToyStatus(Status):
    ready: int = 0


class Toy(Resource[ToySpec, ToyStatus], group="toys.example.io", version="v1"):
    """Has a status."""


def toy(**metadata: Any) -> Toy:
    made = Toy.named(KEY.name, KEY.namespace)
    for name, value in {"uid": "u", "resource_version": "1", "generation": 1, **metadata}.items():
        setattr(made.metadata, name, value)
    return made


class Kept:
    """As much of a client as the handler uses: one object, as the cache has it and as the server has it."""

    def __init__(self, obj: Any) -> None:
        self.obj = obj
        self.fresh: Any = obj
        self.written: list[Any] = []
        self.added_by_others = 0
        self.refusal = NotFound("not found", code=404)

    def in_namespace(self, namespace: str) -> Kept:
        return self

    async def get(self, kind: type[Any], key: ObjectKey) -> Any:
        return self._copy_or_raise(self.obj)

    async def get_fresh(self, kind: type[Any], key: ObjectKey) -> Any:
        return self._copy_or_raise(self.fresh)

    async def patch_by_name(self, kind: type[Any], key: ObjectKey, patch: dict[str, Any]) -> Any:
        raise self.refusal

    async def patch(self, obj: Any, *, subresource: str) -> Any:
        assert subresource == "status"
        self.written.append(copy_of(obj.status))
        self.obj = copy_of(obj)
        self.obj.metadata.resource_version = str(int(obj.metadata.resource_version) + 1)
        self.obj.status.ready += self.added_by_others
        return self.obj

    def _copy_or_raise(self, obj: Any) -> Any:
        if isinstance(obj, Exception):
            raise obj
        return copy_of(obj)


class Bench:
    """A handler and what it reconciles."""

    def __init__(self, declaration: Declaration[Any], obj: Any, threads: ThreadPoolExecutor) -> None:
        self.client = Kept(obj)
        self.clock = VirtualClock()
        self.memory = ControllerMemory(declaration.kind)
        environment = ReconcileEnvironment(
            field_manager=declaration.field_manager,
            owned=frozenset(),
            memory=self.memory,
            recorder=None,
            metrics=Metrics(),
            clock=self.clock,
        )
        client: Any = self.client
        self.handler = ReconcileHandler(declaration, environment, client=client, log=Logger("test"), threads=threads)

    async def reconcile(self, *causes: Cause, priority: int = 0, key: ObjectKey = KEY) -> Outcome:
        return await self.handler.handle(Item(key, priority, causes, 0.0, 0.0), "id", [])


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


async def test_after_a_deletion_that_nobody_saw_the_server_is_asked(threads: ThreadPoolExecutor) -> None:
    seen: list[str] = []

    @controller(Toy)
    async def reconcile(obj: Toy, ctx: Context) -> None:
        seen.append(obj.metadata.resource_version)

    bench = Bench(reconcile, toy(), threads)
    bench.client.fresh = toy(resource_version="7")
    unseen = Cause("ConfigMap", "deleted", KEY, final_state_unknown=True)

    await bench.reconcile(Cause("ConfigMap", "deleted", KEY))
    await bench.reconcile(unseen)
    bench.client.fresh = Forbidden("no", code=403)
    await bench.reconcile(unseen)
    bench.client.fresh = NotFound("gone", code=404)
    outcome = await bench.reconcile(unseen)

    assert seen == ["1", "7", "1"]
    assert outcome.result == "success"


@pytest.mark.parametrize(("said", "priority"), [(None, 3), (5, 5), (0, 0)])
async def test_the_next_reconcile_has_the_priority_that_was_asked_for_or_that_of_this_one(
    threads: ThreadPoolExecutor, said: int | None, priority: int
) -> None:
    class Keeper:
        async def reconcile(self, obj: Toy, ctx: Context) -> Result:
            return Result(requeue_after=9, priority=said)

        async def finalize(self, obj: Toy, ctx: Context) -> Result:
            return Result(requeue_after=9, priority=said)

    declared = controller(Toy, finalizer=FINALIZER)(Keeper)
    bench = Bench(declared, toy(finalizers=[FINALIZER]), threads)
    outcome = await bench.reconcile(priority=3)
    bench.client.obj.metadata.deletion_timestamp = bench.clock.now()
    terminating = await bench.reconcile(priority=3)

    assert (outcome.requeue_after, outcome.priority) == (9, priority)
    assert (terminating.requeue_after, terminating.priority) == (9, priority)


@pytest.mark.parametrize(
    ("kind", "key", "terminating", "result"),
    [
        pytest.param(Toy, KEY, "shop", "success", id="its own"),
        pytest.param(Toy, KEY, "mall", "requeue", id="another"),
        pytest.param(Namespace, ObjectKey("", "shop"), "shop", "success", id="the object itself"),
        pytest.param(Namespace, ObjectKey("", "shop"), "mall", "requeue", id="another than the object"),
    ],
)
async def test_an_object_of_a_terminating_namespace_is_left_alone(
    threads: ThreadPoolExecutor, kind: type[Any], key: ObjectKey, terminating: str, result: str
) -> None:
    cause = StatusCause(reason="NamespaceTerminating", message=f"namespace {terminating} is being terminated")

    @controller(kind)
    async def reconcile(obj: Any, ctx: Context) -> None:
        raise Forbidden("no", code=403, causes=[cause])

    bench = Bench(reconcile, kind.named(key.name, key.namespace or None), threads)
    outcome = await bench.reconcile(key=key)

    assert (outcome.result, outcome.retry) == (result, result == "requeue")


@pytest.mark.parametrize(("gone", "result"), [("shop", "success"), ("mall", "error")])
async def test_an_object_of_a_deleted_namespace_is_left_alone(
    threads: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture, gone: str, result: str
) -> None:
    @controller(Toy)
    async def reconcile(obj: Toy, ctx: Context) -> None:
        raise NotFound("not there", code=404, details={"kind": "namespaces", "name": gone})

    outcome = await Bench(reconcile, toy(), threads).reconcile()

    assert (outcome.result, outcome.retry) == (result, result == "error")
    assert [record.levelname for record in caplog.records] == ["WARNING"] * (result == "error")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RetryAfter(7.0), Outcome(result="requeue_after", requeue_after=7.0, priority=3)),
        (Terminal("never"), Outcome(result="terminal")),
        (NotOwned("taken"), Outcome(result="error", requeue_after=300.0, priority=3)),
        (Conflict("late", code=409), Outcome(result="requeue", retry=True, priority=3)),
        (Forbidden("no", code=403), Outcome(result="error", retry=True, max_backoff=300.0, priority=3)),
        (ServerError("down", code=500), Outcome(result="error", retry=True, priority=3)),
        (RuntimeError("a bug"), Outcome(result="error", retry=True, priority=3, unexpected=True)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
async def test_an_error_decides_when_its_object_is_tried_again(
    threads: ThreadPoolExecutor, error: Exception, expected: Outcome
) -> None:
    @controller(Toy)
    async def reconcile(obj: Toy, ctx: Context) -> None:
        obj.status.ready = 2
        raise error

    bench = Bench(reconcile, toy(), threads)
    outcome = await bench.reconcile(priority=3)

    kept = None if isinstance(error, RetryAfter | Conflict) else error
    assert outcome == msgspec.structs.replace(expected, error=kept)
    assert [(status.ready, status.observed_generation) for status in bench.client.written] == [(2, None)]


async def _nothing() -> None: ...


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, ""),
        (Result(), ""),
        (
            {"requeue": 5},
            r"reconcile returned \{'requeue': 5\}; return a Result, such as Result\(requeue_after=30\), or None",
        ),
        (60, r"reconcile returned 60; to be called again, return Result\(requeue_after=60\)"),
        (True, "reconcile returned True; return a Result"),
        (_nothing, "reconcile returned a coroutine that nobody has awaited; write await in front of the call"),
    ],
)
async def test_an_answer_that_is_no_result_is_an_error_that_says_what_to_return(
    threads: ThreadPoolExecutor, answer: Any, words: str
) -> None:
    @controller(Toy)
    async def reconcile(obj: Toy, ctx: Context) -> Any:
        return answer() if answer is _nothing else answer

    outcome = await Bench(reconcile, toy(), threads).reconcile()

    assert outcome.result == ("error" if words else "success")
    assert re.match(words, str(outcome.error or ""))


async def test_a_kind_without_a_status_has_none_written(threads: ThreadPoolExecutor) -> None:
    @controller(ConfigMap)
    async def reconcile(obj: ConfigMap, ctx: Context) -> None: ...

    bench = Bench(reconcile, ConfigMap.named(KEY.name, KEY.namespace), threads)

    assert (await bench.reconcile()).result == "success"
    assert bench.client.written == []


@pytest.mark.parametrize("finalizers", [[], ["somebody.else/holds-it"]], ids=["none", "of somebody else"])
async def test_a_terminating_object_without_the_finalizer_is_not_finalized(
    threads: ThreadPoolExecutor, finalizers: list[str]
) -> None:
    called: list[str] = []

    class Keeper:
        async def reconcile(self, obj: Toy, ctx: Context) -> None:
            called.append("reconcile")

        async def finalize(self, obj: Toy, ctx: Context) -> None:
            called.append("finalize")

    terminating = toy(finalizers=finalizers, deletion_timestamp=VirtualClock().now())
    bench = Bench(controller(Toy, finalizer=FINALIZER)(Keeper), terminating, threads)

    assert (await bench.reconcile()).result == "success"
    assert called == []


async def test_a_new_generation_is_noted_in_a_status_that_stays_the_same(threads: ThreadPoolExecutor) -> None:
    @controller(Toy)
    async def reconcile(obj: Toy, ctx: Context) -> None:
        obj.status.ready = 2

    bench = Bench(reconcile, toy(), threads)
    await bench.reconcile()
    await bench.reconcile()
    bench.client.obj.metadata.generation = 2
    await bench.reconcile()
    await bench.reconcile()

    assert [(status.ready, status.observed_generation) for status in bench.client.written] == [(2, 1), (2, 2)]


@pytest.mark.parametrize("added", [0, 1], ids=["nothing else", "more than was written"])
async def test_a_written_status_is_suppressed_unless_there_is_more_in_it(
    threads: ThreadPoolExecutor, added: int
) -> None:
    @controller(Toy)
    async def reconcile(obj: Toy, ctx: Context) -> None:
        obj.status.ready = 2

    bench = Bench(reconcile, toy(), threads)
    bench.client.added_by_others = added
    await bench.reconcile()

    own_event = change_of(old=toy(), new=bench.client.obj)
    assert bench.memory.self_writes.suppresses(own_event, KEY, lambda: None) is (added == 0)


def write_loop(wait: float, target: str = "ConfigMap shop/c") -> WriteLoop:
    return WriteLoop(target=target, pattern="empty", paths=(), count=8, wait=wait)


async def test_an_object_in_loops_waits_for_the_slowest_unless_it_is_edited_or_made_anew(
    threads: ThreadPoolExecutor,
) -> None:
    @controller(Toy)
    async def reconcile(obj: Toy, ctx: Context) -> Result:
        if obj.metadata.generation == 1:
            ctx._state.write_loops += [write_loop(4.0), write_loop(60.0), write_loop(8.0)]
        return Result(requeue_after=1.0)

    bench = Bench(reconcile, toy(), threads)
    waits = [(await bench.reconcile()).requeue_after]
    await bench.clock.advance(20)
    waits.append((await bench.reconcile()).requeue_after)
    bench.client.obj.metadata.generation = 2
    waits.append((await bench.reconcile()).requeue_after)
    assert waits == [60.0, 40.0, 1.0]

    bench.client.obj.metadata.generation = 1
    await bench.reconcile()
    made_anew, bench.client.obj = bench.client.obj, NotFound("gone", code=404)
    await bench.reconcile()
    bench.client.obj = made_anew
    await bench.clock.advance(20)

    assert (await bench.reconcile()).requeue_after == 60.0, "it is held back anew, not for what is left"


@pytest.mark.parametrize(
    ("missing", "result"), [({"name": KEY.name}, "success"), ({}, "error")], ids=["object", "kind"]
)
async def test_an_object_that_is_deleted_before_it_has_the_finalizer_is_left_alone(
    threads: ThreadPoolExecutor, missing: dict[str, str], result: str
) -> None:
    called: list[str] = []

    class Keeper:
        async def reconcile(self, obj: Toy, ctx: Context) -> None:
            called.append(obj.metadata.name)

        async def finalize(self, obj: Toy, ctx: Context) -> None: ...

    bench = Bench(controller(Toy, finalizer=FINALIZER)(Keeper), toy(), threads)
    bench.client.refusal = NotFound("not found", code=404, details=missing)

    outcome = await bench.reconcile()

    assert (outcome.result, called) == (result, [])


async def test_a_clean_up_in_loops_waits_too_and_that_of_the_next_object_does_not(threads: ThreadPoolExecutor) -> None:
    class Keeper:
        async def reconcile(self, obj: Toy, ctx: Context) -> None: ...

        async def finalize(self, obj: Toy, ctx: Context) -> Result:
            ctx._state.write_loops.append(write_loop(60.0))
            return Result(requeue_after=1.0)

    terminating = toy(finalizers=[FINALIZER], deletion_timestamp=VirtualClock().now())
    bench = Bench(controller(Toy, finalizer=FINALIZER)(Keeper), terminating, threads)
    await bench.reconcile()
    await bench.clock.advance(20)
    assert (await bench.reconcile()).requeue_after == 40.0

    bench.client.obj = NotFound("gone", code=404)
    await bench.reconcile()
    bench.client.obj = terminating

    assert (await bench.reconcile()).requeue_after == 1.0


async def test_in_a_fight_over_the_object_itself_an_edit_is_a_blow(threads: ThreadPoolExecutor) -> None:
    @controller(Toy)
    async def reconcile(obj: Toy, ctx: Context) -> None:
        ctx._state.write_loops.append(write_loop(60.0, f"Toy {KEY}"))

    bench = Bench(reconcile, toy(), threads)
    await bench.reconcile()
    await bench.clock.advance(20)
    bench.client.obj.metadata.generation = 2

    assert (await bench.reconcile()).requeue_after == 40.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda obj, ctx: ctx.apply([ConfigMap.named("a"), ConfigMap.named("b")]), "call it for each of the 2"),
        (lambda obj, ctx: ctx.apply(None), r"takes an object, such as ConfigMap.named\('web'\), and was given None"),
        (lambda obj, ctx: ctx.apply(ConfigMap), "was given the class ConfigMap"),
        (lambda obj, ctx: ctx.apply({"kind": "ConfigMap"}), "takes an object and no dict"),
        (lambda obj, ctx: ctx.apply(ConfigMap()), "a ConfigMap without a name, .*; give it one, or use ctx.create"),
        (lambda obj, ctx: ctx.apply(obj), "Toy shop/web itself, which is no child of its own; change its status"),
        (lambda obj, ctx: ctx.create(Toy.named("web")), "ctx.create was given Toy shop/web itself"),
        (lambda obj, ctx: ctx.patch(ConfigMap), "ctx.patch takes an object"),
        (lambda obj, ctx: ctx.delete("web"), r"was given 'web'; ctx.remove\(Kind, name\) deletes one by its name"),
        (lambda obj, ctx: ctx.remove(ConfigMap, ConfigMap.named("a")), "ctx.remove takes a kind and a name"),
        (
            lambda obj, ctx: ctx.condition("Ready", "yes"),
            "the condition Ready was given 'yes'; it is True, False, or None",
        ),
        (lambda obj, ctx: ctx.condition(True, "Ready"), r"given the type True; write it like ctx.condition\('Ready'"),
        (lambda obj, ctx: ctx.condition("Ready", False, reason="not yet"), "a reason is one word, such as"),
        (lambda obj, ctx: ctx.event("Made", "it", type="warning"), "given the type 'warning'; it is Normal or Warning"),
        (
            lambda obj, ctx: ctx.event("Failed", ValueError("no")),
            "ctx.event takes strings, and was given 'Failed', Val",
        ),
        (lambda obj, ctx: ctx.event("Made", "it", about="pod"), r"ctx.event\(about=...\) takes an object"),
        (lambda obj, ctx: ctx.wait(ctx.confirm()), "ctx.wait is for plain functions, and would wait for itself here"),
        (lambda obj, ctx: ctx.wait(3), "ctx.wait was given 3, which is nothing to wait for"),
    ],
)
async def test_a_wrong_call_of_the_context_is_refused_in_a_sentence(
    threads: ThreadPoolExecutor, call: Any, words: str
) -> None:
    @controller(Toy)
    async def reconcile(obj: Toy, ctx: Context) -> None:
        answer = call(obj, ctx)
        if answer is not None:
            await answer

    outcome = await Bench(reconcile, toy(), threads).reconcile()

    assert isinstance(outcome.error, ConfigError)
    assert re.search(words, str(outcome.error))
