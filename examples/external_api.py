"""External API: keep an object in step with a system that sends no events, by asking it now and then.

    kubewright run --embedded examples/external_api.py
    echo '{"value": 21.5}' > temperature.json; python -m http.server 8000      # a system to ask

    echo '
    apiVersion: sensors.example.io/v1
    kind: Sensor
    metadata: {name: kitchen, namespace: default}
    spec: {url: "http://127.0.0.1:8000/temperature.json", every: 10s}
    ' | kubectl apply -f -

Look at `kubectl get sensor -w` while you edit the file, and while you stop the server: the last value stays, and the
condition Reachable says since when it is not fresh.

The traps: a time of the last look in the status, which would make each look a write that every watcher gets; a failure
that wipes out what was known; a request without a time limit, which keeps a worker for ever; and raising an error for a
system that is down, which fills the log. The next look is `requeue_after`, so nothing runs in between.
"""

from typing import Annotated

import aiohttp

from kubewright import Context, Duration, Field, Resource, Result, Rule, Spec, Status, controller

LIMIT = aiohttp.ClientTimeout(total=5)
AT_LEAST_A_SECOND = Rule(rule="duration(self) >= duration('1s')", message="must be 1s or more, such as 30s or 1h")


class SensorSpec(Spec):
    url: Annotated[str, Field(pattern="^https?://")]
    """Answers with {"value": <number>}."""
    every: Annotated[Duration, Field(rules=[AT_LEAST_A_SECOND])] = Duration("1m")
    """How long to wait between two looks."""


class SensorStatus(Status):
    value: float | None = None
    """What was read last."""


class Sensor(
    Resource[SensorSpec, SensorStatus],
    group="sensors.example.io",
    version="v1",
    columns={"Value": ".status.value", "Reachable": '.status.conditions[?(@.type=="Reachable")].status'},
):
    """A number that somebody else knows."""


@controller(Sensor, concurrency=10)
async def poll(sensor: Sensor, ctx: Context) -> Result:
    try:
        sensor.status.value = await value_at(sensor.spec.url)
    except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
        ctx.condition("Reachable", False, reason="NoAnswer", message=f"{type(error).__name__}: {error}")
    else:
        ctx.condition("Reachable", True, reason="Answered")
    return Result(requeue_after=sensor.spec.every.seconds)


async def value_at(url: str) -> float:
    async with aiohttp.ClientSession(timeout=LIMIT, raise_for_status=True) as session, session.get(url) as answer:
        return float((await answer.json(content_type=None))["value"])
