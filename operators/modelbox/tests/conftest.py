"""Both control planes, with the operator at work on them under its generated roles.

KUBEWRIGHT_REAL=0 leaves the real control plane out.
"""

import os
from collections.abc import AsyncIterator
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from kubewright import Client, Cluster
from kubewright.k8s.core.v1 import Namespace
from kubewright.testing import RunningOperator, running

_numbers = count(1)

# The same examples each time, however busy the machine is.
settings.register_profile(
    "modelbox",
    max_examples=50,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("modelbox")


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
    async with running("modelbox", on=cluster) as operator:
        yield operator


@pytest.fixture
def client(operator: RunningOperator) -> Client:
    """The administrator's client of the cluster in which the operator runs."""
    return operator.client


@pytest.fixture
async def namespace(cluster: Cluster) -> AsyncIterator[str]:
    """A namespace of its own for each test."""
    name = f"test-{next(_numbers)}"
    await cluster.client.create(Namespace.named(name))
    yield name
    await cluster.client.delete(Namespace, name)
