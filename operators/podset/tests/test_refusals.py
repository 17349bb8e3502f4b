"""What a set does where it may not have its pods."""

import pytest
from kubewright import NotFound, Quantity
from kubewright.client import HttpRequest, HttpResponse
from kubewright.errors import Cause, Forbidden, Invalid, KubewrightError, ServerError, TransportError
from kubewright.k8s.core.v1 import Namespace, ResourceQuota, ResourceQuotaSpec, Secret
from kubewright.k8s.events.v1 import Event
from kubewright.manager import load_operator
from kubewright.testing import gone, status, until

from podset.api.v1alpha1.podset import PodSet, PodSetSpec
from podset.status import failure_of
from tests.home import Home, condition


async def quota(home: Home, pods: int) -> None:
    """Let there be at most so many pods, as soon as the server counts them."""
    limit = {"pods": Quantity(str(pods)), "secrets": Quantity("0")}
    await home.client.apply(ResourceQuota.named("pods", home.namespace, spec=ResourceQuotaSpec(hard=limit)), force=True)
    await until(
        home.client,
        ResourceQuota,
        home.key("pods"),
        lambda seen: seen.status is not None and (seen.status.hard or {}).get("pods") == limit["pods"],
    )
    while not await is_heeded(home):  # who refuses hears of it a moment later
        pass


async def is_heeded(home: Home) -> bool:
    """Whether a quota keeps a secret from being made."""
    try:
        await home.client.create(Secret.named("none", home.namespace), dry_run=True)
    except Forbidden as refusal:
        return "exceeded quota" in str(refusal)
    return False


async def ask(home: Home, size: int) -> None:
    await home.client.create(PodSet.named("web", home.namespace, spec=PodSetSpec(size=size)))


async def test_a_quota_leaves_a_part_of_the_set_and_is_named(home: Home) -> None:
    await quota(home, 3)
    await ask(home, 6)

    seen = await home.until(
        lambda seen: seen.status.ready_replicas == 3 and condition(seen, "Degraded").reason == "QuotaExceeded"
    )

    assert len(seen.status.nodes) == 3
    degraded = condition(seen, "Degraded")
    assert degraded.status == "True"
    assert (degraded.message or "").startswith("exceeded quota: pods, requested: pods=1, used: pods=3, limited: pods=3")
    assert seen.status.observed_generation == seen.metadata.generation


async def test_a_set_heals_when_the_quota_is_raised(home: Home) -> None:
    await quota(home, 1)
    await ask(home, 3)
    await home.until(lambda seen: seen.status.conditions and condition(seen, "Degraded").status == "True")

    await quota(home, 5)

    seen = await home.settled(3)
    assert condition(seen, "Degraded").status == "False"


async def test_what_is_refused_is_told_as_a_warning(home: Home) -> None:
    await quota(home, 0)
    await ask(home, 2)

    async with home.client.watch(Event, namespace=home.namespace, initial_events=True) as events:
        async for event in events:
            if event.object.reason == "QuotaExceeded":
                break
    assert event.object.type == "Warning"


async def test_a_terminating_namespace_is_no_failure(home: Home) -> None:
    refused = 0

    def terminating(request: HttpRequest) -> HttpResponse | None:
        nonlocal refused
        if request.method != "POST" or not request.path.endswith(f"/{home.namespace}/pods"):
            return None
        refused += 1
        return status(403, reason="Forbidden", causes=[Cause(reason="NamespaceTerminating")])

    home.faults.answer = terminating
    await ask(home, 3)
    seen = await home.until(lambda seen: seen.status.observed_generation == 1)
    elsewhere = await Home.new(home.operator)
    await elsewhere.podset(2)  # work that was queued later has been done

    assert refused == 1
    assert condition(seen, "Degraded").status == "False"


async def test_a_namespace_goes_away_with_a_set_in_it(home: Home) -> None:
    await home.podset(3)

    await home.client.delete(Namespace, home.namespace)

    await gone(home.client, Namespace, home.namespace, timeout=90)
    with pytest.raises(NotFound):
        await home.client.get(PodSet, home.key("web"))


@pytest.mark.parametrize(
    ("error", "reason", "lasting"),
    [
        (Forbidden('pods "web-x" is forbidden: exceeded quota: q', code=403), "QuotaExceeded", False),
        (Forbidden("no", code=403), "PodCreateFailed", False),
        (Invalid("wrong", code=422), "PodCreateFailed", True),
        (ServerError("down", code=500), "PodCreateFailed", False),
        (TransportError("cut"), "PodCreateFailed", False),
    ],
)
def test_each_failure_has_a_reason(error: KubewrightError, reason: str, lasting: bool) -> None:
    failure = failure_of(error)

    assert (failure.reason, failure.is_lasting) == (reason, lasting)
    assert "web-x" not in failure.message


async def test_a_pod_that_no_retry_would_make_valid_is_not_tried_again_soon(home: Home) -> None:
    tried = 0

    def invalid(request: HttpRequest) -> HttpResponse | None:
        nonlocal tried
        if request.method != "POST" or not request.path.endswith(f"/{home.namespace}/pods"):
            return None
        tried += 1
        return status(422, reason="Invalid", message="the pod is wrong")

    home.faults.answer = invalid
    await ask(home, 3)
    seen = await home.until(lambda seen: seen.status.conditions and condition(seen, "Degraded").status == "True")
    elsewhere = await Home.new(home.operator)
    await elsewhere.podset(2)

    assert tried == 1
    assert condition(seen, "Degraded").reason == "PodCreateFailed"
    assert condition(seen, "Degraded").message == "the pod is wrong"


class Told:
    """Stands for the context of a reconcile in which nothing but conditions is asked for."""

    def __init__(self) -> None:
        self.conditions: dict[str, tuple[bool, str]] = {}

    def condition(self, kind: str, status: bool, *, reason: str, message: str) -> None:
        self.conditions[kind] = (status, reason)
        assert message == "spec.size is -1; it cannot be below 0"


async def test_a_size_stored_under_an_older_schema_is_refused_and_changes_nothing() -> None:
    old = PodSet.named("web", "shop", spec=PodSetSpec(size=-1))
    old.metadata.generation = 4
    told = Told()

    (controller,) = load_operator("podset").controllers
    assert await controller(old, told) is None

    assert told.conditions["Ready"] == (False, "InvalidSpec")
    assert told.conditions["Degraded"] == (True, "InvalidSpec")
    assert old.status.observed_generation == 4
