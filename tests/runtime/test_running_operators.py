"""`kubewright.testing`: an operator under its own roles, waits that watch, and faults on its wire.

Covers: kubewright.testing
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from datetime import datetime, timedelta

import pytest
from examples.multi_version import Cache, CacheV1alpha1
from tests.conftest import Kubectl
from tests.planes import Plane
from tests.runtime.parcel_operator import Parcel, ParcelSpec, deliver

from kubewright import Client, Context, ObjectKey, Result, Scope, controller, default, validate
from kubewright.api import KubeObject, copy_of
from kubewright.cache import Change
from kubewright.errors import ConfigError, Invalid, KubewrightError, ServerError
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.k8s.events.v1 import Event
from kubewright.manager.operator import Operator, load_operator
from kubewright.testing import VirtualClock, gone, running, time_limit, until
from kubewright.webhooks.registration.local import LocalWebhooks
from kubewright.webhooks.registration.targets import CRD


@pytest.fixture(scope="module")
def operator() -> Operator:
    found = load_operator("tests.runtime.parcel_operator")
    return Operator(
        name="parcels",
        package=found.package,
        namespace="parcels-system",
        kinds=found.kinds,
        controllers=found.controllers,
        webhooks=found.webhooks,
        modules=found.modules,
    )


async def test_an_operator_works_with_the_rights_of_its_roles_alone(
    plane: Plane, namespace: str, operator: Operator, kubectl: Kubectl
) -> None:
    async with running(operator, on=plane) as at_work:
        await at_work.client.create(Parcel.named("book", namespace, spec=ParcelSpec(address="here")))

        parcel = await until(at_work.client, Parcel, ObjectKey(namespace, "book"), lambda seen: seen.status.delivered)

        assert parcel.status.observed_generation == 1
        assert (await at_work.client.get(ConfigMap, "book", namespace=namespace)).data == {"address": "here"}
        assert at_work.forbidden == []
        who = f"--as=system:serviceaccount:parcels-system:{at_work.operator.name}-controller-manager"
        assert (await kubectl("auth", "can-i", "patch", "configmaps", "-A", who)).strip() == "yes"


async def test_what_the_operator_has_noticed_can_be_waited_for(
    plane: Plane, namespace: str, operator: Operator
) -> None:
    key = ObjectKey(namespace, "book")
    async with running(operator, on=plane) as at_work:
        at_work.faults.hold_streams()
        made = await at_work.client.create(Parcel.named("book", namespace, spec=ParcelSpec(address="here")))
        with pytest.raises(AssertionError, match="it holds no such object"):
            await at_work.until_cached(Parcel, "book", bool, namespace=namespace, timeout=0)
        at_work.faults.release_streams()

        await at_work.until_cached(Parcel, key, bool)
        with pytest.raises(AssertionError, match="address: here"):
            await at_work.until_cached(Parcel, key, lambda seen: seen is None, timeout=0)
        await at_work.client.delete(made)
        await at_work.until_cached(Parcel, key, lambda seen: seen is None)


async def test_time_passes_when_the_operator_is_idle_and_what_it_asked_for_then_is_due(
    plane: Plane, namespace: str
) -> None:
    clock, held, looks = VirtualClock(), asyncio.Event(), list[datetime]()

    @controller(Parcel)
    async def look(parcel: Parcel, ctx: Context) -> Result:
        looks.append(ctx.now())
        await ctx.client.patch_by_name(Parcel, parcel.key, {"status": {"delivered": True}}, subresource="status")
        await held.wait()  # the status can be seen, and the reconcile goes on
        return Result(requeue_after=3600)

    here = Scope(namespaces=(namespace,))
    async with running(look, on=plane, clock=clock, scopes={Parcel: here}) as at_work:
        await at_work.client.create(Parcel.named("clock", namespace, spec=ParcelSpec(address="here")))
        await until(at_work.client, Parcel, ObjectKey(namespace, "clock"), lambda seen: seen.status.delivered)
        with pytest.raises(AssertionError, match=rf"is not idle after 0 s: parcel {namespace}/clock"):
            await at_work.idle(timeout=0)
        held.set()

        for _ in range(2):
            await at_work.idle()
            await clock.advance(3600)
        await at_work.idle()

    assert looks == [looks[0] + timedelta(hours=hour) for hour in range(3)]


async def test_a_run_that_never_ends_is_ended_although_the_clock_stands_still(plane: Plane, namespace: str) -> None:
    begun, ends = asyncio.Event(), list[str]()

    @controller(Parcel)
    async def stay(parcel: Parcel, ctx: Context) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append(parcel.metadata.name)
            raise

    here = Scope(namespaces=(namespace,))
    async with running(stay, on=plane, clock=VirtualClock(), scopes={Parcel: here}, grace_period=0.3) as at_work:
        await at_work.client.create(Parcel.named("stuck", namespace, spec=ParcelSpec(address="here")))
        await begun.wait()

    assert ends == ["stuck"]


async def test_who_converts_versions_already_is_named(plane: Plane) -> None:
    async with running("examples.multi_version", on=plane):
        with pytest.raises(ConfigError, match=r"caches.memory.example.io is served by .*; stop that one first"):
            async with running("examples.multi_version", on=plane):
                pytest.fail("two convert the versions of one kind")


async def test_who_may_not_convert_leaves_the_conversion_alone(plane: Plane, client: Client) -> None:
    webhooks = load_operator("examples.multi_version").webhooks
    async with running("examples.multi_version", on=plane):
        before = await client.get(CRD, "caches.memory.example.io")
        with pytest.raises(ConfigError, match="stop that one first"):
            await LocalWebhooks(client, webhooks, operator="second", port=9, address="127.0.0.1").run()

        assert (await client.get(CRD, "caches.memory.example.io")).get("spec") == before.get("spec")


async def test_a_process_that_was_killed_does_not_keep_the_next_from_converting(plane: Plane, client: Client) -> None:
    name = "caches.memory.example.io"
    async with running("examples.multi_version", on=plane):
        left = await client.get(CRD, name)
    crd = await client.get(CRD, name)
    before = crd.get("spec.conversion")
    process = left.metadata.annotations["kubewright.io/local-process"]
    crd.metadata.labels = left.metadata.labels
    crd.metadata.annotations = left.metadata.annotations | {
        "kubewright.io/local-process": f"{process.rpartition('/')[0]}/999999999",
        "kubewright.io/local-url": "https://127.0.0.1:9",
    }
    crd["spec"]["conversion"] = left["spec"]["conversion"]
    await client.patch(crd)

    async with running("examples.multi_version", on=plane):
        url = (await client.get(CRD, name)).get("spec.conversion.webhook.clientConfig.url")

    assert url != left.get("spec.conversion.webhook.clientConfig.url")
    assert (await client.get(CRD, name)).get("spec.conversion") == before


async def test_objects_stored_in_another_version_are_there_at_the_start(plane: Plane, namespace: str) -> None:
    @controller(CacheV1alpha1, name="old-caches")
    async def look(cache: CacheV1alpha1, ctx: Context) -> None: ...

    found = load_operator("examples.multi_version")
    operator = Operator(
        name=found.name,
        package=found.package,
        namespace=found.namespace,
        kinds=found.kinds,
        controllers=(look,),
        webhooks=found.webhooks,
        modules=found.modules,
    )
    key = ObjectKey(namespace, "stored")
    here: dict[type[KubeObject], Scope] = {CacheV1alpha1: Scope(namespaces=(namespace,))}
    async with running(operator, on=plane, admin=True, scopes=here) as at_work:
        await at_work.client.create(Cache.named(key.name, namespace))

    # A clock that stands still leaves no second try.
    async with running(operator, on=plane, admin=True, scopes=here, clock=VirtualClock()) as at_work:
        await at_work.until_cached(CacheV1alpha1, key, bool)


async def test_a_single_controller_is_an_operator_too(plane: Plane, namespace: str) -> None:
    async with running(deliver, on=plane) as at_work:
        await at_work.client.create(Parcel.named("pen", namespace, spec=ParcelSpec(address="here")))

        await until(at_work.client, Parcel, ObjectKey(namespace, "pen"), lambda seen: seen.status.delivered)

        assert at_work.operator.controllers == (deliver,)
        assert at_work.operator.kinds == (Parcel,)
        await at_work.client.delete(Parcel, "pen", namespace=namespace)


async def test_what_an_operator_may_not_do_fails_the_test_and_is_named(
    plane: Plane, namespace: str, operator: Operator
) -> None:
    with pytest.raises(AssertionError, match=r"cannot get resource \"secrets\".*Declare it with `rbac"):  # noqa: PT012
        async with running(operator, on=plane) as at_work:
            spec = ParcelSpec(address="here", curious=True)
            await at_work.client.create(Parcel.named("book", namespace, spec=spec))
            await until(at_work.client, Parcel, ObjectKey(namespace, "book"), lambda seen: seen.status.delivered)
            assert len(at_work.forbidden) == 1
            await at_work.client.delete(Parcel, "book", namespace=namespace)  # the next test's operator would see it


async def test_an_exception_in_a_reconciler_fails_the_test_and_shows_its_line(plane: Plane, namespace: str) -> None:
    tries = asyncio.Queue[str]()

    @controller(ConfigMap, name="failing")
    async def fail(config: ConfigMap, ctx: Context) -> None:
        if config.metadata.namespace == namespace and config.metadata.name == "paint":
            tries.put_nowait(config.metadata.name)
            raise KeyError("colour")

    with pytest.raises(AssertionError, match=r"raised what nobody caught") as caught:  # noqa: PT012
        async with running(fail, on=plane) as at_work:
            await at_work.client.create(ConfigMap.named("paint", namespace))
            await tries.get()
            await tries.get()  # it is tried again: that the first try has been logged is certain now
            assert [str(error) for error in at_work.errors[:1]] == ["'colour'"]

    assert 'raise KeyError("colour")' in str(caught.value)
    async with running(fail, on=plane, expected_errors=[LookupError]) as at_work:
        for _ in range(2):
            await tries.get()
        assert at_work.errors


async def test_a_test_that_fails_first_fails_with_its_own_error(plane: Plane, namespace: str) -> None:
    tried = asyncio.Event()

    @controller(ConfigMap, name="failing")
    async def fail(config: ConfigMap, ctx: Context) -> None:
        tried.set()
        raise KeyError("colour")

    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        async with running(fail, on=plane):
            await tried.wait()
            raise ZeroDivisionError


async def test_an_exception_in_a_mapping_fails_the_test_too(plane: Plane, namespace: str) -> None:
    met = asyncio.Event()

    def broken(change: Change[ConfigMap]) -> list[ObjectKey]:
        if change.key == ObjectKey(namespace, "mapped"):
            met.set()
            raise KeyError("mapping")
        return []

    @controller(Parcel, watches=[(ConfigMap, broken)])
    async def idle(parcel: Parcel, ctx: Context) -> None: ...

    with pytest.raises(AssertionError, match="KeyError: 'mapping'"):  # noqa: PT012
        async with running(idle, on=plane) as at_work:
            await at_work.client.create(ConfigMap.named("mapped", namespace))
            await met.wait()


async def test_an_exception_in_a_webhook_fails_the_test_too(plane: Plane, namespace: str) -> None:
    @validate(ConfigMap, on="create", namespace_selector={"kubernetes.io/metadata.name": namespace})
    def broken(config: ConfigMap) -> None:
        raise KeyError("webhook")

    declared = Operator(name="hooks", package=__name__, namespace="hooks-system", webhooks=(broken,))
    with pytest.raises(AssertionError, match="KeyError: 'webhook'"):  # noqa: PT012
        async with running(declared, on=plane) as at_work:
            with pytest.raises(ServerError, match="failed"):
                await at_work.client.create(ConfigMap.named("asked", namespace))


async def test_waits_in_vain_show_what_the_operator_did(plane: Plane, namespace: str, operator: Operator) -> None:
    key = ObjectKey(namespace, "book")
    async with running(operator, on=plane, webhooks=False) as at_work:
        await at_work.client.create(Parcel.named("book", namespace, spec=ParcelSpec(address="here")))
        await until(at_work.client, Parcel, key, lambda seen: seen.status.delivered)
        await at_work.idle()
        at_work.faults.hold_streams()
        told = rf"the last reconciles of the operator parcels:\n(.|\n)*parcel {namespace}/book  success"

        with pytest.raises(AssertionError, match=told):
            await until(at_work.client, Parcel, key, lambda seen: not seen.status.delivered, timeout=0.5)
        with pytest.raises(AssertionError, match=told):
            await gone(at_work.client, Parcel, key, timeout=0.5)
        with pytest.raises(AssertionError, match=told):
            await at_work.until_cached(Parcel, key, lambda seen: seen is None, timeout=0)
        at_work.faults.release_streams()


async def create_until_refused(client: Client, parcel: Parcel) -> None:
    while True:
        await client.create(copy_of(parcel), dry_run=True)


async def test_webhooks_are_asked_while_the_operator_runs_and_unless_they_are_off(
    plane: Plane, namespace: str, operator: Operator
) -> None:
    bad = ParcelSpec(address="two\nlines")
    # A server notices a moment later that there is somebody to ask, and that there is nobody any more.
    async with running(operator, on=plane) as at_work, time_limit(30):
        with pytest.raises(Invalid, match="must be one line"):
            await create_until_refused(at_work.client, Parcel.named("refused", namespace, spec=bad))
    async with running(operator, on=plane, webhooks=False) as at_work, time_limit(30):
        while await at_work.client.find(Parcel, "taken", namespace=namespace) is None:
            with suppress(ServerError):
                await at_work.client.create(Parcel.named("taken", namespace, spec=bad))


async def test_events_that_are_held_back_arrive_when_they_are_released(
    plane: Plane, namespace: str, operator: Operator
) -> None:
    async with running(operator, on=plane, webhooks=False) as at_work:
        at_work.faults.hold_streams()
        await at_work.client.create(Parcel.named("late", namespace))
        with pytest.raises(AssertionError, match="does not exist"):
            await until(at_work.client, ConfigMap, ObjectKey(namespace, "late"), timeout=0.2)

        at_work.faults.release_streams()

        await until(at_work.client, ConfigMap, ObjectKey(namespace, "late"))


async def test_numbers_of_objects_are_shown_as_metrics_and_go_with_them(
    plane: Plane, namespace: str, operator: Operator
) -> None:
    async with running(operator, on=plane, webhooks=False) as at_work, time_limit(60):
        shown = at_work.manager.metrics
        wanted = f'parcel_address_length{{name="book",namespace="{namespace}"}} 4.0'
        made = await at_work.client.create(Parcel.named("book", namespace, spec=ParcelSpec(address="here")))
        await until(at_work.client, Parcel, made.key, lambda seen: seen.status.delivered)
        other = await at_work.client.create(Parcel.named("pen", namespace))
        await until(at_work.client, Parcel, other.key, lambda seen: seen.status.delivered)
        # A reconcile ends, with its gauges, a moment after its status can be seen.
        while wanted not in shown.exposition().decode():
            await at_work.client.get(Parcel, made.key)

        await at_work.client.delete(made)
        last = await at_work.client.create(Parcel.named("ink", namespace))
        await until(at_work.client, Parcel, last.key, lambda seen: seen.status.delivered)

        while f'name="ink",namespace="{namespace}"' not in (exposed := shown.exposition().decode()):
            await at_work.client.get(Parcel, last.key)
        assert f'name="book",namespace="{namespace}"' not in exposed


async def test_an_object_that_cannot_be_helped_is_told_so_in_an_event(
    plane: Plane, namespace: str, operator: Operator
) -> None:
    async with running(operator, on=plane, webhooks=False) as at_work:
        await at_work.client.create(Parcel.named("lost", namespace, spec=ParcelSpec(address="nowhere")))

        async with at_work.client.watch(Event, namespace=namespace, initial_events=True) as events:
            event = (await anext(events)).object

    assert (event.type, event.reason, event.note) == ("Warning", "Terminal", "there is no such place")
    assert event.regarding is not None
    assert event.regarding.name == "lost"


async def test_a_wait_in_vain_shows_the_object_as_it_was_last_seen(client: Client, namespace: str) -> None:
    await client.create(ConfigMap.named("seen", namespace, data={"colour": "green"}))

    for seconds in (1, 5, 25):  # a busy server may need more than a second to show it at all
        with pytest.raises(AssertionError, match=rf"not as expected after {seconds} s") as caught:
            await until(
                client, ConfigMap, ObjectKey(namespace, "seen"), lambda seen: seen.data is None, timeout=seconds
            )
        if "it does not exist" not in str(caught.value):
            break
    assert re.search(r"; last seen as\n(.|\n)*colour: green", str(caught.value))
    for seconds in (1, 5, 25):
        with pytest.raises(AssertionError, match=rf"is still there after {seconds} s") as caught:
            await gone(client, ConfigMap, ObjectKey(namespace, "seen"), timeout=seconds)
        if "has not said" not in str(caught.value):
            break
    assert re.search(r"; last seen as\n(.|\n)*colour: green", str(caught.value))


async def test_a_successor_of_the_same_name_is_another_object(client: Client, namespace: str) -> None:
    first = await client.create(ConfigMap.named("again", namespace))
    await client.delete(first)
    await client.create(ConfigMap.named("again", namespace))

    await gone(client, ConfigMap, ObjectKey(namespace, "again"), uid=first.metadata.uid)

    assert await client.find(ConfigMap, "again", namespace=namespace) is not None
    assert await client.find(ConfigMap, "never", namespace=namespace) is None


class Broken:
    """Sources and hooks of a controller that raise."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def run(self, queue: object) -> None:
        raise ValueError("the broker is gone")

    async def wait_for_sync(self) -> None: ...


class BreaksLater(Broken):
    """Works until it is told to break."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.breaks = asyncio.Event()

    async def run(self, queue: object) -> None:
        await self.breaks.wait()
        await super().run(queue)


async def test_an_operator_whose_source_breaks_fails_at_its_start(plane: Plane) -> None:
    @controller(Parcel, sources=[Broken("broker")])
    async def listen(parcel: Parcel, ctx: Context) -> None: ...

    words = r"controller parcel: source broker failed in .*test_running_operators.py, line \d+: ValueError: the broker"
    with pytest.raises(KubewrightError, match=words):
        async with running(listen, on=plane):
            pytest.fail("it has started")


async def test_an_operator_whose_setup_raises_fails_at_its_start(plane: Plane) -> None:
    @controller(Parcel)
    class Courier:
        async def reconcile(self, parcel: Parcel, ctx: Context) -> None: ...

        async def setup(self, controller: object) -> None:
            raise LookupError("no van")

    with pytest.raises(KubewrightError, match=r"controller parcel: setup failed in .*: LookupError: no van"):
        async with running(Courier, on=plane):
            pytest.fail("it has started")


async def test_two_indexes_of_one_name_are_told_at_the_start(plane: Plane) -> None:
    @controller(Parcel, name="one", indexes={"place": lambda parcel: [parcel.spec.address]})
    async def one(parcel: Parcel, ctx: Context) -> None: ...

    @controller(Parcel, name="two", indexes={"place": lambda parcel: [parcel.metadata.name]})
    async def two(parcel: Parcel, ctx: Context) -> None: ...

    with pytest.raises(ConfigError, match="Parcel has an index 'place' already, by another function"):
        async with running(one, two, on=plane):
            pytest.fail("it has started")


async def test_a_test_that_waits_for_an_operator_that_has_ended_is_ended_with_the_cause(plane: Plane) -> None:
    source = BreaksLater("broker")

    @controller(Parcel, sources=[source])
    async def listen(parcel: Parcel, ctx: Context) -> None: ...

    async def wait_in_vain() -> None:
        async with running(listen, on=plane) as at_work:
            assert at_work.manager.state == "running"
            source.breaks.set()
            await asyncio.Event().wait()

    with pytest.raises(KubewrightError, match=r"source broker failed in .*: ValueError: the broker is gone"):
        await wait_in_vain()
    current = asyncio.current_task()
    assert current is not None
    assert not current.cancelling()


async def test_an_error_of_the_block_tells_that_the_operator_had_failed(plane: Plane) -> None:
    source = BreaksLater("broker")

    @controller(Parcel, sources=[source])
    async def listen(parcel: Parcel, ctx: Context) -> None: ...

    async def look() -> None:
        async with running(listen, on=plane) as at_work:
            source.breaks.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                assert at_work.manager.state == "failed"
                raise AssertionError("seen nothing") from None

    with pytest.raises(AssertionError, match="seen nothing") as told:
        await look()
    assert "had failed meanwhile: controller parcel: source broker failed" in "".join(told.value.__notes__)


async def test_controllers_and_webhooks_are_run_together_as_a_manager_does(plane: Plane, namespace: str) -> None:
    @controller(Parcel, name="notes", owns=[ConfigMap])
    async def note(parcel: Parcel, ctx: Context) -> None:
        await ctx.apply(ConfigMap.named(parcel.metadata.name, data={"noted": "yes"}))

    @default(Parcel)
    def fill(parcel: Parcel) -> None:
        parcel.spec.address = parcel.spec.address or "here"

    async with running(deliver_to, note, fill, on=plane) as at_work:
        made = await at_work.client.create(Parcel.named("book", namespace, spec=ParcelSpec()))
        assert made.spec.address == "here"
        await until(at_work.client, ConfigMap, ObjectKey(namespace, "book"), lambda seen: seen.data)
        await until(at_work.client, Parcel, ObjectKey(namespace, "book"), lambda seen: seen.status.delivered)
        assert at_work.operator.name == "couriers"
    with pytest.raises(ConfigError, match="takes one operator, or its controllers and webhooks, but not both"):
        async with running("shop", note, on=plane):
            pass


@controller(Parcel, name="couriers")
async def deliver_to(parcel: Parcel, ctx: Context) -> None:
    parcel.status.delivered = True
