"""Requests at random, drawn from the OpenAPI documents: none of them is an internal error.

RANDOM_REQUESTS (60) says how many examples of twenty requests, for a long run by hand:

    RANDOM_REQUESTS=5000 pytest -s tests/scenarios/embedded/test_random_requests.py

Covers: kubewright.apiserver
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.scenarios.embedded.requests_at_random import Operation, RandomRequest, is_meant, operations_of, requests_to
from tests.scenarios.embedded.wire import Wire
from yarl import URL

from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.testing import time_limit

EXAMPLES = int(os.environ.get("RANDOM_REQUESTS", "60"))
DOCUMENTS = (
    *("api/v1", "apis/apps/v1", "apis/batch/v1", "apis/apiextensions.k8s.io/v1", "apis/rbac.authorization.k8s.io/v1"),
    *("apis/coordination.k8s.io/v1", "apis/autoscaling/v2", "apis/policy/v1", "apis/networking.k8s.io/v1"),
    *("apis/admissionregistration.k8s.io/v1", "apis/storage.k8s.io/v1", "apis/discovery.k8s.io/v1"),
    *("apis/authentication.k8s.io/v1", "apis/authorization.k8s.io/v1", "apis/certificates.k8s.io/v1"),
)


class Server:
    """A server of its own, which random requests may leave in any state."""

    def __init__(self, cluster: EmbeddedCluster, session: aiohttp.ClientSession, operations: list[Operation]) -> None:
        self.cluster = cluster
        self.session = session
        self.operations = operations
        self.codes: Counter[int] = Counter()

    async def ask(self, asked: RandomRequest) -> None:
        """Send it; an AssertionError if the server says that it is the server's fault."""
        url = URL(f"https://127.0.0.1{asked.path}", encoded=True).with_port(URL(self.cluster.url).port)
        async with (
            time_limit(60),
            self.session.request(asked.method, url, headers=asked.headers, data=asked.body) as answer,
        ):
            self.codes[answer.status] += 1
            if asked.is_watch and answer.status == 200:
                return
            body = await answer.read()
            assert answer.status < 500 or is_meant(answer.status, body), f"{asked}: {answer.status} {body[:600]!r}"


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[Server]:
    async with EmbeddedCluster(controllers=False) as cluster:
        wire = Wire(cluster.kubeconfig)
        connector = aiohttp.TCPConnector(ssl=wire.tls, limit=20)
        async with aiohttp.ClientSession(connector=connector, skip_auto_headers=("Content-Type", "Accept")) as session:
            operations: list[Operation] = []
            for name in DOCUMENTS:
                async with session.get(f"{wire.url}/openapi/v3/{name}") as answer:
                    operations += operations_of(await answer.json())
            yield Server(cluster, session, operations)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fails a test during which anything was logged as an error."""
    with caplog.at_level(logging.WARNING):
        yield
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.slow
# The server on the other thread uses `random`, which hypothesis takes for the strategies' doing.
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
async def test_no_request_at_random_is_an_internal_error(server: Server, quiet: None) -> None:
    batches = st.lists(requests_to(server.operations), min_size=20, max_size=20)
    loop = asyncio.get_running_loop()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(batches)
    def asked_all(batch: list[RandomRequest]) -> None:
        async def ask() -> None:
            await asyncio.gather(*(server.ask(asked) for asked in batch))

        # hypothesis is synchronous and runs in a thread of its own; the server is here.
        asyncio.run_coroutine_threadsafe(ask(), loop).result()

    await asyncio.to_thread(asked_all)
    print(dict(server.codes))
    assert server.codes.total() >= EXAMPLES * 20
    assert server.codes[200] + server.codes[201] > server.codes.total() // 20, "hardly anything came near the mark"
