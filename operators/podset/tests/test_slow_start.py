"""Many writes at once, without flooding a server that says no."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubewright.errors import ConnectFailed, Forbidden, KubewrightError, RequestTimeout, ServerError, TransportError

from podset.pod_reader import is_unanswered
from podset.slow_start import batches, slow_start


class Server:
    """Lets some calls through and refuses the rest."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.calls = 0

    async def create(self) -> None:
        self.calls += 1
        if self.calls > self.room:
            raise Forbidden("exceeded quota", code=403)


@given(st.integers(0, 10_000))
def test_the_batches_double_and_add_up(count: int) -> None:
    sizes = list(batches(count))

    assert sum(sizes) == count
    assert all(later == earlier * 2 for earlier, later in pairwise(sizes[:-1]))
    assert len(sizes) < 15


async def test_a_server_that_refuses_everything_is_asked_once() -> None:
    server = Server(room=0)

    done = await slow_start(500, server.create)

    assert server.calls == 1
    assert done.succeeded == 0
    assert [type(error) for error in done.errors] == [Forbidden]


async def test_after_a_batch_with_a_failure_no_further_one_is_begun() -> None:
    server = Server(room=5)

    done = await slow_start(500, server.create)

    assert (server.calls, done.succeeded, len(done.errors)) == (1 + 2 + 4, 5, 2)


async def test_without_a_failure_everything_is_done() -> None:
    server = Server(room=500)

    assert await slow_start(500, server.create) == (500, ())


async def test_a_bug_is_no_refusal() -> None:
    async def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await slow_start(3, broken)


@pytest.mark.parametrize(
    ("error", "unanswered"),
    [
        (RequestTimeout("no answer"), True),
        (TransportError("cut"), True),
        (ServerError("down", code=500), True),
        (ConnectFailed("refused"), False),
        (Forbidden("no", code=403), False),
    ],
)
def test_only_what_may_have_been_executed_is_in_doubt(error: KubewrightError, unanswered: bool) -> None:
    assert is_unanswered(error) is unanswered
