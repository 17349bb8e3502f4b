"""No over-reaction where the cache is behind: a set never has more pods than its size, nor loses more than asked."""

import asyncio

from kubewright.client import HttpRequest, HttpResponse
from kubewright.k8s.core.v1 import Pod
from kubewright.testing import status

from tests.home import Home


def about_pods(request: HttpRequest) -> bool:
    return request.path.endswith("/pods")


async def test_late_events_do_not_make_it_create_twice(home: Home) -> None:
    await home.podset(2)
    async with home.counting() as counts:
        home.faults.hold_streams(about_pods)
        for size in (3, 4, 5, 6):  # each wakes the operator, which sees none of the pods it made in its watch
            await home.resize(size)
        await home.until(lambda seen: seen.status.replicas == 6)

        home.faults.release_streams()
        await home.settled(6)

    assert max(counts) == 6
    assert len(await home.pods()) == 6


async def test_late_events_do_not_make_it_delete_twice(home: Home) -> None:
    await home.podset(6)
    async with home.counting() as counts:
        home.faults.hold_streams(about_pods)
        for size in (5, 4, 3):
            await home.resize(size)
        await home.until(lambda seen: seen.status.replicas == 3)

        home.faults.release_streams()
        await home.settled(3)

    assert min(counts) == 3
    assert len(await home.pods()) == 3


async def test_runs_that_follow_a_failure_count_what_was_created_before_it(home: Home) -> None:
    """Every second creation fails: each reconcile is followed at once by another, and none sees a pod in its watch."""
    await home.podset(0)
    calls = 0

    def every_second(request: HttpRequest) -> HttpResponse | None:
        nonlocal calls
        if request.method != "POST" or not about_pods(request):
            return None
        calls += 1
        return status(403, reason="Forbidden", message="not now") if calls % 2 == 0 else None

    async with home.counting() as counts:
        home.faults.answer = every_second
        home.faults.hold_streams(about_pods)
        await home.resize(5)
        await home.until(lambda seen: seen.status.replicas == 5)

        home.faults.release_streams()
        await home.settled(5)

    assert max(counts) == 5
    assert calls > 5


async def test_a_creation_whose_answer_was_lost_is_found_and_not_repeated(home: Home) -> None:
    await home.podset(1)
    lost: asyncio.Future[HttpRequest] = asyncio.get_running_loop().create_future()
    executed = False

    def lose_the_first(request: HttpRequest) -> HttpResponse | None:
        if not about_pods(request):
            return None
        if request.method == "POST" and not lost.done():
            lost.set_result(request)
            return status(504, reason="Timeout", message="no answer")
        # Until the server has executed it, nobody can know.
        return None if executed else status(503, reason="ServiceUnavailable")

    async with home.counting() as counts:
        home.faults.hold_streams(about_pods)
        home.faults.answer = lose_the_first
        since = len(home.faults.requests)
        await home.resize(2)
        request = await lost
        await home.client.request("POST", request.path, body=request.body)
        executed = True

        await home.until(lambda seen: seen.status.replicas == 2)
        assert home.writes(since, "POST", "/pods") == []
        home.faults.release_streams()
        await home.settled(2)

    assert max(counts) == 2


async def test_a_creation_that_was_lost_on_the_way_is_repeated(home: Home) -> None:
    await home.podset(1)
    failures = 0

    def lose_the_first(request: HttpRequest) -> HttpResponse | None:
        nonlocal failures
        if request.method == "POST" and about_pods(request) and failures == 0:
            failures += 1
            return status(504, reason="Timeout", message="no answer")
        return None

    home.faults.answer = lose_the_first
    await home.resize(2)

    await home.settled(2)

    assert failures == 1
    assert len(await home.client.list(Pod, namespace=home.namespace)) == 2
