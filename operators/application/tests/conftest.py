"""Two control planes, the operator at work on each with the rights of its generated roles, and a home for each test."""

import os
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from kubewright import Cluster
from kubewright.testing import RunningOperator, running

from tests.home import Home

# The same examples each time, however busy the machine is.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture(scope="session", params=["embedded", "real"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """Both control planes, each with a simulated node; KUBEWRIGHT_REAL=0 leaves the real one out."""
    if request.param == "embedded":
        async with Cluster.embedded(nodes=1) as embedded:
            await embedded.wait_for_controllers()
            yield embedded
    elif os.environ.get("KUBEWRIGHT_REAL") == "0":
        pytest.skip("KUBEWRIGHT_REAL=0 leaves the real control plane out")
    else:
        async with Cluster.real(nodes=1, start_timeout=300) as real:
            yield real


@pytest.fixture(scope="module")
async def operator(cluster: Cluster) -> AsyncIterator[RunningOperator]:
    """The operator at work, with its webhooks; what its roles do not allow fails the module."""
    async with running("application", on=cluster) as operator:
        yield operator


@pytest.fixture
async def home(operator: RunningOperator) -> Home:
    """A namespace of the test's own."""
    return await Home.made(operator)


@pytest.fixture(autouse=True)
def healed(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test breaks works again for the next one."""
    yield
    if "operator" in request.fixturenames:
        faults = request.getfixturevalue("operator").faults
        faults.answer = None
        faults.release_streams()
