"""Both control planes, with the operator at work on them under its generated roles, and a home for each test.

KUBEWRIGHT_REAL=0 leaves the real control plane out.
"""

import os
from collections.abc import AsyncIterator

import pytest
from home import Home
from hypothesis import HealthCheck, settings
from kubewright import Cluster
from kubewright.testing import RunningOperator, running

# The same examples in every run, however slow the machine is.
settings.register_profile(
    "steady", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


@pytest.fixture(scope="session", params=["embedded", "real"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A cluster with two simulated nodes."""
    if request.param == "embedded":
        async with Cluster.embedded(nodes=2) as embedded:
            await embedded.wait_for_controllers()
            yield embedded
    elif os.environ.get("KUBEWRIGHT_REAL") == "0":
        pytest.skip("KUBEWRIGHT_REAL=0 leaves the real control plane out")
    else:
        async with Cluster.real(nodes=2, start_timeout=300) as real:
            yield real


@pytest.fixture(scope="module")
async def operator(cluster: Cluster) -> AsyncIterator[RunningOperator]:
    """The operator, with webhooks and with no more rights than `kubewright generate` gives it."""
    async with running("sidecarset", on=cluster) as operator:
        yield operator


@pytest.fixture
async def home(operator: RunningOperator) -> AsyncIterator[Home]:
    """A namespace and a label of the test's own; the sets it makes go with it."""
    home = await Home.new(operator.client)
    yield home
    operator.faults.answer = None
    operator.faults.release_streams()
    await home.leave(operator)
