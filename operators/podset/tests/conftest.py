"""Two control planes, the operator at work on each with the rights of its generated roles, and a home for each test."""

import asyncio
import os
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from kubewright import Cluster
from kubewright.errors import ClusterError
from kubewright.testing import RunningOperator, running

from tests.home import Home, Kubectl

# The same examples each time, however busy the machine is.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture(scope="session", params=["embedded", "real"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """Both control planes, each with two simulated nodes; KUBEWRIGHT_REAL=0 leaves the real one out."""
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
    """The operator at work; what its roles do not allow fails the module."""
    async with running("podset", on=cluster) as operator:
        yield operator


@pytest.fixture
async def home(operator: RunningOperator) -> Home:
    """A namespace of the test's own, with what pods need."""
    return await Home.new(operator)


@pytest.fixture(autouse=True)
def healed(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test breaks works again for the next one."""
    yield
    if "operator" in request.fixturenames:
        faults = request.getfixturevalue("operator").faults
        faults.answer = None
        faults.release_streams()


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    """kubectl for this cluster: its words in, its output back."""
    try:
        program = cluster.kubectl
    except ClusterError as error:
        pytest.skip(str(error))

    async def run(*words: str) -> str:
        # Not waited for in a blocking way: the embedded cluster answers from this very loop.
        command = (str(program), "--kubeconfig", str(cluster.kubeconfig), *words)
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
        output, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
        return output.decode()

    return run
