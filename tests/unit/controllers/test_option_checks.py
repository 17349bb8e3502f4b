"""A mistake in what a controller is declared with is refused at that line, in a sentence that says what to write."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kubewright import ObjectKey, Resource, Spec, Status
from kubewright.controllers.declaration import Declaration, Owned, Watch, controller
from kubewright.controllers.mapping import by_index, for_each, to_all, to_self
from kubewright.controllers.predicates import Predicate, matches_labels, on
from kubewright.controllers.reconcile import Result
from kubewright.controllers.sources import Channel, Timer
from kubewright.errors import ConfigError, RetryAfter
from kubewright.k8s.core.v1 import ConfigMap


class Thing(Resource[Spec, Status], group="example.io", version="v1"):
    """For these tests."""


class Source:
    """Looks like a source, and is plain."""

    def run(self, queue: object) -> None: ...

    async def wait_for_sync(self) -> None: ...


async def reconcile(thing: Thing, ctx: object) -> None: ...


def yields(thing: Thing, ctx: object) -> Any:
    yield thing


async def slow(change: object) -> list[ObjectKey]:
    return []


class NeedyStart:
    async def reconcile(self, thing: Thing, ctx: object) -> None: ...

    async def setup(self) -> None: ...


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"watches": [ConfigMap]},
            r"watches has ConfigMap without a mapper, .*; write watches=\[\(ConfigMap, mapper\)\]",
        ),
        ({"watches": [(ConfigMap,)]}, "watches has ConfigMap without a mapper"),
        ({"watches": ["ConfigMap"]}, "watches takes classes of kinds, and 'ConfigMap' is none"),
        ({"watches": [(to_self, ConfigMap)]}, "Watch takes classes of kinds, and <function to_self"),
        ({"watches": [(ConfigMap, "web")]}, r"Watch\(ConfigMap\): the mapper is 'web'; give a function"),
        ({"owns": [ConfigMap.named("web")]}, "was given an object; write ConfigMap"),
        (
            {"watches": [(ConfigMap, to_all)]},
            "the mapper to_all gets one argument, a change: .*; call it if it makes a",
        ),
        ({"watches": [(ConfigMap, slow)]}, "the mapper slow is async; make it plain"),
        ({"own": [ConfigMap]}, "@controller has no option own; did you mean owns?"),
        ({"colour": 3}, "@controller has no option colour; it has name, owns, watches"),
        ({"concurrency": "2"}, "controller thing: concurrency is '2'; give a whole number, as in concurrency=4"),
        ({"concurrency": 2.5}, "concurrency is 2.5; give a whole number"),
        ({"timeout": timedelta(seconds=3)}, r"timeout is datetime.*; give seconds as a number, as in timeout=30"),
        ({"timeout": 0}, "timeout is 0; it is in seconds, and above 0"),
        ({"max_backoff": timedelta(seconds=3)}, "max_backoff is .*; give seconds as a number"),
        ({"rate_limit": 10}, r"rate_limit is 10; give retries per second, .*rate_limit=\(10, 100\)"),
        ({"rate_limit": (0, 0)}, r"rate_limit is \(0, 0\)"),
        ({"when": "added"}, "when is 'added'; give a predicate, as in when=generation_changed"),
        ({"when": on}, r"when=on is what makes a predicate; call it, as in when=on\(...\)"),
        ({"when": Predicate}, "give a predicate"),
        ({"sources": Channel()}, r"sources takes a list; write sources=\[...\]"),
        ({"sources": [Channel]}, r"sources has the class Channel; give an object, as in Channel\(...\)"),
        ({"sources": [Source()]}, "which is no source: it has no async method run; give a Channel, a Timer"),
        ({"indexes": ["size"]}, "indexes is a mapping from names to functions; write indexes={'name': function}"),
        ({"indexes": {"size": 3}}, "indexes has 'size': 3; give a name, and a function that gets an object"),
        ({"gauges": {"size": 3}}, "gauges has 'size': 3"),
        ({"scope": "shop"}, r"scope is 'shop'; write it like scope=Scope\(namespaces="),
        ({"finalizer": "x"}, "the finalizer 'x' cannot be used; write it like shop.example.io/clean-up"),
        ({"finalizer": "no good/x"}, "the finalizer 'no good/x' cannot be used: prefix part"),
        ({"finalizer": "example.io/x"}, "finalizer='example.io/x' does nothing without a method finalize"),
        ({"name": 3}, "controller name 3 is no string"),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused_where_it_is_written(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        controller(Thing, **options)(reconcile)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (3, r"controller thing: 3 is no function; write it like async def reconcile\(obj, ctx\)"),
        (yields, "controller thing: yields yields, so that calling it does nothing; return instead"),
        (NeedyStart, r"setup gets one argument, the Controller: .*; write it like async def setup\(controller\)"),
    ],
)
def test_what_is_no_reconciler_is_refused_where_it_is_declared(target: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        controller(Thing)(target)


def nothing() -> list[ObjectKey]:
    return []


@pytest.mark.parametrize(
    ("make", "given", "words"),
    [
        (on, ("create",), r"on\('create'\) is never true: a change is .*; write on\(\"added\"\)"),
        (on, ("modified",), r'write on\("updated"\)'),
        (
            on,
            (
                "deleted",
                "gone",
            ),
            r"on\('gone'\) is never true: a change is added, updated or deleted",
        ),
        (on, (), r"on\(\) is never true; name the changes"),
        (matches_labels, ({"app": "web"},), "write the selector like kubectl"),
        (for_each, (3,), "give a function that gets an object and returns the keys"),
        (by_index, (3,), "by_index: it has 3: "),
        (Owned, ("ConfigMap",), "Owned takes classes of kinds, and 'ConfigMap' is none"),
        (
            Watch,
            (
                "ConfigMap",
                to_self,
            ),
            "Watch takes classes of kinds, and 'ConfigMap' is none",
        ),
        (
            Timer,
            (
                timedelta(seconds=3),
                nothing,
            ),
            "timer timer: seconds is .*; give seconds as a number",
        ),
        (
            Timer,
            (
                0,
                nothing,
            ),
            "timer timer: seconds is 0; it is in seconds, and above 0",
        ),
        (
            Timer,
            (
                3,
                [ObjectKey("shop", "web")],
            ),
            "give a function that returns them, for each turn",
        ),
        (Result, (60,), r"Result\(60\) does not say what that is; write Result\(requeue_after=60\)"),
        (lambda given: Result(**given), ({"requeue": True},), r"Result\(requeue=True\): there is no such field"),
        (
            lambda given: Result(**given),
            ({"requeue_after": math.nan},),
            r"Result\(requeue_after=nan\): give seconds as a number",
        ),
        (RetryAfter, (math.inf,), r"RetryAfter\(inf\): give seconds as a number"),
    ],
)
def test_what_can_never_work_is_refused_when_it_is_made(
    make: Callable[..., object], given: tuple[Any, ...], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        make(*given)


def test_a_time_that_is_past_is_due_at_once() -> None:
    assert Result(requeue_after=-3.5).requeue_after == -3.5
    assert RetryAfter(-1).seconds == -1


def test_what_is_right_is_taken() -> None:
    declared = controller(
        Thing,
        owns=[Owned(ConfigMap, when=on("added", "deleted"))],
        watches=[(ConfigMap, by_index("size")), Watch(ConfigMap, for_each(lambda config: [config.key]))],
        when=Predicate(lambda change: True),
        timeout=0.5,
        rate_limit=(10, 100),
        sources=[Channel(), Timer(3, nothing)],
        indexes={"size": lambda thing: ["1"]},
    )(reconcile)

    assert isinstance(declared, Declaration)
    assert len(declared.sources) == 2
