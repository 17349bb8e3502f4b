"""external_api: a number that somebody else knows, looked up now and then."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest
from aiohttp import web
from examples.external_api import Sensor, SensorSpec
from tests.examples.conftest import RunExample

from kubewright import Client, Duration, find_condition
from kubewright.errors import Invalid
from kubewright.testing import VirtualClock, until

EVERY = 47.0


class Thermometer:
    """A system to ask; `answer` is what it says."""

    def __init__(self) -> None:
        self.answer = '{"value": 21.5}'
        self.asked = 0
        self.url = ""

    async def tell(self, request: web.Request) -> web.Response:
        self.asked += 1
        return web.Response(text=self.answer, status=200 if self.answer else 503)


@pytest.fixture
async def thermometer() -> AsyncIterator[Thermometer]:
    thermometer = Thermometer()
    app = web.Application()
    app.router.add_get("/temperature", thermometer.tell)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    thermometer.url = f"http://{host}:{port}/temperature"
    yield thermometer
    await runner.cleanup()


@pytest.fixture
def kitchen(namespace: str, thermometer: Thermometer) -> Sensor:
    return Sensor.named("kitchen", namespace, spec=SensorSpec(url=thermometer.url, every=Duration(f"{EVERY:g}s")))


def reachable(sensor: Sensor) -> str:
    condition = find_condition(sensor.status.conditions, "Reachable")
    return condition.status if condition is not None else ""


def told_of(what: str, sensor: Sensor) -> bool:
    return what in str(sensor.status.conditions)


async def test_the_status_follows_what_the_system_says(
    run_example: RunExample, client: Client, kitchen: Sensor, thermometer: Thermometer, clock: VirtualClock
) -> None:
    async with run_example("external_api", clock=clock) as operator:
        await client.create(kitchen)
        await until(client, Sensor, kitchen.key, lambda it: it.status.value == 21.5)
        thermometer.answer = '{"value": 19}'
        await operator.idle()
        await clock.advance(EVERY)
        await until(client, Sensor, kitchen.key, lambda it: it.status.value == 19)


async def test_a_system_that_is_down_is_told_and_the_last_value_stays(
    run_example: RunExample, client: Client, kitchen: Sensor, thermometer: Thermometer, clock: VirtualClock
) -> None:
    async with run_example("external_api", clock=clock) as operator:
        await client.create(kitchen)
        await until(client, Sensor, kitchen.key, lambda it: reachable(it) == "True")
        for answer, what in (("", "503"), ('["no", "such", "thing"]', "TypeError"), ("no JSON", "JSONDecodeError")):
            thermometer.answer = answer
            await operator.idle()
            await clock.advance(EVERY)
            down = await until(client, Sensor, kitchen.key, partial(told_of, what))
            assert reachable(down) == "False"
            assert down.status.value == 21.5

        thermometer.answer = '{"value": 20}'
        await operator.idle()
        await clock.advance(EVERY)
        up = await until(client, Sensor, kitchen.key, lambda it: reachable(it) == "True")
        assert up.status.value == 20


async def test_a_look_that_brings_nothing_new_writes_nothing(
    run_example: RunExample, client: Client, kitchen: Sensor, thermometer: Thermometer, clock: VirtualClock
) -> None:
    async with run_example("external_api", clock=clock) as operator:
        await client.create(kitchen)
        first = await until(client, Sensor, kitchen.key, lambda it: it.status.value == 21.5)
        thermometer.answer = '{"value": 21.5, "comment": "as before"}'
        for _ in range(3):
            await operator.idle()
            await clock.advance(EVERY)
        await operator.idle()

    again = await client.get(Sensor, kitchen.key)
    assert thermometer.asked == 4
    assert again.metadata.resource_version == first.metadata.resource_version


async def test_who_wants_to_ask_all_the_time_is_refused(
    run_example: RunExample, client: Client, kitchen: Sensor
) -> None:
    async with run_example("external_api"):
        await client.create(kitchen)
        for every in ("0s", "10ms", "soon"):
            with pytest.raises(Invalid, match=r"spec\.every"):
                await client.patch_by_name(Sensor, kitchen.key, {"spec": {"every": every}})
