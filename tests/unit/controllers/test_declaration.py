"""@controller records what a controller watches and how it reconciles."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kubewright import ObjectKey, Scope
from kubewright.api import KubeObject
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Owned, Watch, controller
from kubewright.controllers.mapping import by_index, to_self
from kubewright.controllers.reconcile import Cause, Result
from kubewright.errors import ConfigError, RetryAfter
from kubewright.k8s.core.v1 import ConfigMap, Secret


class Thing(KubeObject, group="example.io", version="v1"):
    """For these tests."""


def test_a_metric_has_a_name_that_prometheus_takes() -> None:
    with pytest.raises(ConfigError, match="'ready-pods' is no name for a metric; write it like ready_pods"):
        controller(Thing, gauges={"ready-pods": lambda _: 1})(lambda thing, ctx: None)


def test_a_back_off_that_cannot_grow_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"thing: max_backoff is 0; it is in seconds, and at least 0\.005"):
        controller(Thing, max_backoff=0)


def test_function_stays_callable_and_the_declaration_says_everything() -> None:
    @controller(Thing, owns=[ConfigMap], watches=[(Secret, to_self)], concurrency=3, timeout=5)
    def reconcile(thing: Thing, ctx: Context) -> Result:
        """Do it."""
        return Result(requeue_after=1)

    assert isinstance(reconcile, Declaration)
    assert reconcile(Thing(), None) == Result(requeue_after=1)
    assert (reconcile.name, reconcile.field_manager, reconcile.finalizer) == ("thing", "thing", "example.io/thing")
    assert reconcile.kinds == (Thing, ConfigMap, Secret)
    assert (reconcile.concurrency, reconcile.timeout, reconcile.needs_leader) == (3, 5, True)
    assert reconcile.__doc__ == "Do it."
    assert reconcile.__name__ == "reconcile"


def test_class_brings_finalize_setup_and_teardown() -> None:
    class Worker:
        async def reconcile(self, thing: Thing, ctx: Context) -> None: ...

        async def finalize(self, thing: Thing, ctx: Context) -> None: ...

        def setup(self, controller: object) -> None: ...

        def teardown(self, controller: object) -> None: ...

    declare = controller(
        Thing, name="keeper", owns=[Owned(ConfigMap, controller_only=False)], watches=[Watch(Secret, to_self)]
    )
    Keeper = declare(Worker)  # noqa: N806 - what a decorated class is called

    assert Keeper.finalize is not None
    assert Keeper.setup is not None
    assert Keeper.teardown is not None
    assert Keeper.finalizer == "example.io/keeper"
    assert not Keeper.owns[0].controller_only


def test_class_without_reconcile_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a reconcile method"):

        @controller(Thing)
        class Nothing:
            pass


def test_class_that_needs_arguments_is_refused() -> None:
    with pytest.raises(ConfigError, match="must need no arguments"):

        @controller(Thing)
        class Needy:
            def __init__(self, what: int) -> None: ...

            def reconcile(self, thing: Thing, ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("options", "message"),
    [({"name": "Not Valid"}, "cannot be used"), ({"concurrency": 0}, "give at least 1")],
)
def test_options_that_cannot_work_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        controller(Thing, **options)  # type: ignore[arg-type]  # wrong on purpose


def test_cause_reads_like_a_sentence() -> None:
    assert str(Cause("ConfigMap", "updated", ObjectKey("shop", "web"))) == "ConfigMap shop/web updated"
    assert str(Cause("timer", "due")) == "timer due"


def test_a_controller_that_reconciles_terminating_objects_has_no_finalizer() -> None:
    class Both:
        async def reconcile(self, thing: Thing, ctx: Context) -> None: ...

        async def finalize(self, thing: Thing, ctx: Context) -> None: ...

    assert controller(Thing, deleting=True)(lambda thing, ctx: None).deleting
    with pytest.raises(ConfigError, match="leave finalize out"):
        controller(Thing, deleting=True)(Both)


def test_a_mapping_by_an_index_that_nobody_declared_is_refused() -> None:
    with pytest.raises(ConfigError, match="Secret is mapped by the index 'config', which does not exist"):

        @controller(Thing, watches=[(Secret, by_index("config"))])
        async def reconcile(thing: Thing, ctx: Context) -> None: ...


def test_waits_are_numbers() -> None:
    with pytest.raises(ConfigError, match=r"Result\(requeue_after='5s'\): give seconds as a number"):
        Result(requeue_after="5s")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ConfigError, match=r"Result\(priority='high'\): give a whole number"):
        Result(priority="high")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ConfigError, match=r"RetryAfter\(datetime.timedelta\(seconds=5\)\): give seconds as a number"):
        RetryAfter(timedelta(seconds=5), "later")  # type: ignore[arg-type]  # the mistake
    assert Result(requeue_after=5, priority=1) == Result(requeue_after=5.0, priority=1)


def test_each_kind_is_watched_in_the_scopes_that_are_said() -> None:
    vault = Scope(namespaces=("vault",))

    @controller(
        Thing,
        owns=[Secret, Owned(ConfigMap, scope=vault)],
        watches=[(ConfigMap, to_self), Watch(Secret, to_self)],
        scope=Scope(labels="app=web"),
    )
    def reconcile(thing: Thing, ctx: Context) -> None: ...

    assert reconcile.scopes == {Thing: (Scope(labels="app=web"),), Secret: (None,), ConfigMap: (vault, None)}


def reconcile_alone(thing: Thing) -> None:
    """Lacks the context."""


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (reconcile_alone, {}, r"@controller above reconcile_alone does not say .* write @controller\(Kind\)"),
        ("Thing", {}, "@controller takes classes of kinds, and 'Thing' is none; import the class"),
        (int, {}, "@controller takes classes of kinds, and int is none"),
        (Thing, {"owns": ConfigMap}, r"controller thing: owns takes a list; write owns=\[...\] around what is in it"),
        (Thing, {"owns": Owned(ConfigMap)}, "controller thing: owns takes a list"),
        (Thing, {"owns": ["ConfigMap"]}, "@controller takes classes of kinds, and 'ConfigMap' is none"),
        (Thing, {"watches": (Secret, to_self)}, "controller thing: watches takes a list"),
    ],
)
def test_an_option_that_is_no_kind_and_no_list_is_rejected_in_a_sentence(
    given: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        controller(given, **options)(lambda thing, ctx: None)


def test_a_reconciler_that_cannot_be_called_is_refused_where_it_is_declared() -> None:
    with pytest.raises(ConfigError, match="thing: reconcile_alone gets two arguments, the object and its Context: too"):
        controller(Thing)(reconcile_alone)


def test_a_finalizer_that_cannot_be_called_is_refused_where_it_is_declared() -> None:
    class Things:
        def reconcile(self, thing: Thing, ctx: Context) -> None: ...

        def finalize(self, thing: Thing) -> None: ...

    with pytest.raises(ConfigError, match=r"write it like async def finalize\(obj, ctx\)"):
        controller(Thing)(Things)
