"""@controller records what a controller watches and how it runs."""

from __future__ import annotations

import pytest

from kubewright import KubeObject, ObjectKey
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Owned, Watch, controller
from kubewright.controllers.mapping import by_index, to_self
from kubewright.controllers.reconcile import Cause, Result
from kubewright.errors import ConfigError
from kubewright.k8s.core.v1 import ConfigMap, Secret


class Thing(KubeObject, group="example.io", version="v1"):
    """For these tests."""


def test_a_metric_has_a_name_that_prometheus_takes() -> None:
    with pytest.raises(ConfigError, match="'ready-pods' is no name for a metric; write it like ready_pods"):
        controller(Thing, gauges={"ready-pods": lambda _: 1})(lambda thing, ctx: None)


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


def test_class_brings_finalize_and_setup() -> None:
    class Worker:
        async def reconcile(self, thing: Thing, ctx: Context) -> None: ...

        async def finalize(self, thing: Thing, ctx: Context) -> None: ...

        def setup(self, ctx: object) -> None: ...

    declare = controller(
        Thing, name="keeper", owns=[Owned(ConfigMap, controller_only=False)], watches=[Watch(Secret, to_self)]
    )
    Keeper = declare(Worker)  # noqa: N806 - what a decorated class is called

    assert Keeper.finalize is not None
    assert Keeper.setup is not None
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
    [({"name": "Not Valid"}, "cannot be used"), ({"concurrency": 0}, "at least 1 object")],
)
def test_options_that_cannot_work_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        controller(Thing, **options)  # type: ignore[arg-type]  # wrong on purpose


def test_cause_reads_like_a_sentence() -> None:
    assert str(Cause("ConfigMap", "updated", ObjectKey("shop", "web"))) == "ConfigMap shop/web updated"
    assert str(Cause("timer", "due")) == "timer due"


def test_who_reconciles_what_is_being_deleted_has_no_finalizer() -> None:
    class Both:
        async def reconcile(self, thing: Thing, ctx: Context) -> None: ...

        async def finalize(self, thing: Thing, ctx: Context) -> None: ...

    assert controller(Thing, deleting=True)(lambda thing, ctx: None).deleting
    with pytest.raises(ConfigError, match="leave finalize out"):
        controller(Thing, deleting=True)(Both)


def test_a_mapping_by_an_index_that_nobody_declared_is_refused() -> None:
    with pytest.raises(ConfigError, match="Secret is mapped by the index 'config', which there is not"):

        @controller(Thing, watches=[(Secret, by_index("config"))])
        async def reconcile(thing: Thing, ctx: Context) -> None: ...
