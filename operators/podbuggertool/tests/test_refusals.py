"""What is done where the API says no."""

from collections.abc import Callable

import pytest
from kubewright.client import HttpRequest, HttpResponse
from kubewright.errors import Forbidden
from kubewright.k8s.core.v1 import Container, Namespace, Pod, PodSpec
from kubewright.k8s.events.v1 import Event
from kubewright.testing import gone, status, time_limit

from tests.home import Home, condition


class Answers:
    """Answers the operator's attempts to add a container, as long as `answer` says something; counts them."""

    def __init__(self, home: Home, answer: Callable[[int], HttpResponse | None]) -> None:
        self.asked = 0
        self._home = home
        self._answer = answer

    def __call__(self, request: HttpRequest) -> HttpResponse | None:
        if f"/{self._home.namespace}/" not in request.path or not request.path.endswith("/ephemeralcontainers"):
            return None
        self.asked += 1
        return self._answer(self.asked)


def refusing(home: Home, answer: Callable[[int], HttpResponse | None]) -> Answers:
    answers = Answers(home, answer)
    home.faults.answer = answers
    return answers


async def test_a_name_that_an_ordinary_container_has_is_a_failure(home: Home) -> None:
    await home.running_pod()
    await home.tool(container_name="main")

    seen = await home.until(lambda seen: seen.status.failed_pods == 1)

    (failure,) = seen.status.failures
    assert (failure.pod, failure.reason) == ("web", "InjectionRefused")
    assert 'Duplicate value: "main"' in failure.message
    assert (condition(seen, "Degraded").status, condition(seen, "Degraded").reason) == ("True", "InjectionRefused")
    assert condition(seen, "Ready").status == "False"


async def test_a_container_of_the_chosen_name_with_another_image_is_a_failure_and_left_alone(home: Home) -> None:
    await home.running_pod()
    await home.tool("first", container_name="mine")
    await home.counted("first", matched=1, installed=1, running=1)
    answers = refusing(home, lambda _: None)

    await home.tool("second", container_name="mine", image="other:1", max_pods=1)

    seen = await home.counted("second", matched=1, installed=0, running=0)
    assert [(one.pod, one.reason) for one in seen.status.failures] == [("web", "NameTaken")]
    assert (condition(seen, "Degraded").reason, condition(seen, "Ready").status) == ("NameTaken", "False")
    assert answers.asked == 0
    assert (await home.counted("first", matched=1, installed=1)).status.failures == []


async def test_a_tool_with_the_same_name_and_image_shares_the_container(home: Home) -> None:
    await home.running_pod()
    await home.tool("first", container_name="mine")
    await home.counted("first", matched=1, installed=1)

    await home.tool("second", container_name="mine")

    await home.counted("second", matched=1, installed=1, running=1)
    assert await home.containers() == ["mine"]


async def test_a_pod_that_was_refused_is_asked_for_again_only_when_the_tool_changes(home: Home) -> None:
    await home.running_pod()
    answers = refusing(home, lambda number: status(422, reason="Invalid", message="no") if number == 1 else None)
    await home.tool()
    await home.until(lambda seen: seen.status.failed_pods == 1)
    await home.relabel("web", app="web", more="labels")  # wakes the tool
    await home.running_pod("other")
    await home.served("other")
    assert answers.asked == 2
    assert await home.containers() == []

    await home.change(args=["-x"])

    seen = await home.counted(matched=2, installed=2)
    assert seen.status.failures == []
    assert condition(seen, "Degraded").status == "False"


async def test_a_pod_of_the_same_name_is_another_pod(home: Home) -> None:
    first = await home.running_pod()
    refusing(home, lambda number: status(422, reason="Invalid", message="no") if number == 1 else None)
    await home.tool()
    await home.until(lambda seen: seen.status.failed_pods == 1)

    await home.client.delete(Pod, first.key, grace_period=0)
    await gone(home.client, Pod, first.key, uid=first.metadata.uid)
    await home.running_pod()

    await home.served()
    assert (await home.counted(matched=1, installed=1)).status.failures == []


async def test_at_most_ten_failures_are_listed_and_all_are_counted(home: Home) -> None:
    for number in range(12):
        await home.running_pod(f"web-{number}")
    refusing(home, lambda _: status(422, reason="Invalid", message="no"))
    await home.tool()

    seen = await home.until(lambda seen: seen.status.failed_pods == 12)

    assert len(seen.status.failures) == 10


async def test_a_place_that_one_pod_cannot_take_goes_to_the_next(home: Home) -> None:
    await home.running_pod("web-0")
    await home.running_pod("web-1")
    refusing(home, lambda number: status(422, reason="Invalid", message="no") if number == 1 else None)
    await home.tool(max_pods=1)

    await home.counted(matched=2, installed=1)

    assert len(await home.containers("web-1")) == 1


async def test_a_policy_that_forbids_it_is_named_and_the_pod_not_asked_for_again_at_once(home: Home) -> None:
    await home.running_pod()
    message = 'pods "web" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false'
    answers = refusing(home, lambda _: status(403, reason="Forbidden", message=message))
    await home.tool()

    seen = await home.until(lambda seen: seen.status.failed_pods == 1)
    await home.relabel("web", app="web", more="labels")
    await (elsewhere := await Home.new(home.operator)).running_pod()
    await elsewhere.tool()
    await elsewhere.counted(matched=1, installed=1)

    assert condition(seen, "Degraded").reason == "InjectionRefused"
    assert message in (condition(seen, "Degraded").message or "")
    assert answers.asked == 1


async def test_pod_security_forbids_it(home: Home) -> None:
    await home.running_pod()
    namespace = await home.client.get(Namespace, home.namespace)
    namespace.metadata.labels["pod-security.kubernetes.io/enforce"] = "restricted"
    await home.client.patch(namespace)
    await until_restricted(home)
    await home.tool()

    seen = await home.until(lambda seen: seen.status.failed_pods == 1)

    assert condition(seen, "Degraded").reason == "InjectionRefused"
    assert "violates PodSecurity" in (condition(seen, "Degraded").message or "")


async def until_restricted(home: Home) -> None:
    """The server hears of a label of a namespace by a watch of its own, so ask until it has."""
    given = Pod.named("probe", home.namespace, spec=PodSpec(containers=[Container(name="main", image="busybox")]))
    async with time_limit(60):
        while True:
            try:
                await home.client.create(given, dry_run=True)
            except Forbidden:
                return


async def test_a_right_that_is_missing_is_named(home: Home) -> None:
    await home.running_pod()
    message = 'pods "web" is forbidden: User "x" cannot patch resource "pods/ephemeralcontainers" in API group ""'
    refusing(home, lambda _: status(403, reason="Forbidden", message=message))
    await home.tool()

    seen = await home.until(lambda seen: seen.status.failed_pods == 1)

    assert condition(seen, "Degraded").reason == "Forbidden"


async def test_a_cluster_without_ephemeral_containers_is_named_and_left_in_peace(home: Home) -> None:
    for number in range(30):
        await home.running_pod(f"web-{number}")
    missing = status(404, reason="NotFound", message="the server could not find the requested resource")
    answers = refusing(home, lambda _: missing)
    await home.tool()

    seen = await home.until(lambda seen: seen.status.failed_pods > 0)

    assert condition(seen, "Degraded").reason == "EphemeralContainersUnsupported"
    assert answers.asked <= 20


@pytest.mark.parametrize(("code", "reason"), [(409, "Conflict"), (500, "InternalError"), (503, "ServiceUnavailable")])
async def test_what_may_work_the_next_time_is_tried_again(home: Home, code: int, reason: str) -> None:
    await home.running_pod()
    answers = refusing(home, lambda number: status(code, reason=reason) if number < 3 else None)
    await home.tool()

    seen = await home.counted(matched=1, installed=1)

    assert answers.asked == 3
    assert seen.status.failures == []


async def test_an_image_that_cannot_be_pulled_is_a_failure(home: Home) -> None:
    await home.running_pod()
    await home.tool(image="registry.example/missing:1")

    seen = await home.until(lambda seen: seen.status.failed_pods == 1)

    (failure,) = seen.status.failures
    assert (failure.reason, failure.message) == (
        "ImagePullFailed",
        "the image registry.example/missing:1 cannot be pulled",
    )
    assert (seen.status.installed_pods, seen.status.running_pods) == (1, 0)
    assert condition(seen, "Degraded").reason == "ImagePullFailed"


async def test_what_is_refused_is_told_as_a_warning(home: Home) -> None:
    await home.running_pod()
    await home.tool(container_name="main")

    async with home.client.watch(Event, namespace=home.namespace, initial_events=True) as events:
        async for event in events:
            if event.object.reason == "InjectionRefused":
                break
    assert event.object.type == "Warning"


async def test_a_change_of_the_container_is_told(home: Home) -> None:
    await home.running_pod()
    await home.tool()
    await home.counted(matched=1, installed=1)
    await home.change(image="tools:2")

    async with home.client.watch(Event, namespace=home.namespace, initial_events=True) as events:
        async for event in events:
            if event.object.reason == "EarlierContainersStay":
                break
    assert event.object.note == "1 of 1 pods keep the container they had before, which cannot be removed"
