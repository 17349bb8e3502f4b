"""Fixtures every test may use: a real control plane, its kubectl, and a way to wait for a process to be gone.

The control plane is started once per test worker, in about three seconds, and only from binaries that are at hand:
`make binaries` gets them, which may take minutes and is no business of a test. KUBEWRIGHT_REAL=0 skips every test
that needs one; KUBEWRIGHT_REAL=1 fails rather than skips.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

import pytest

from kubewright.cluster.binaries import Binaries, at_hand
from kubewright.cluster.embedded import EmbeddedCluster
from kubewright.cluster.real import RealCluster
from kubewright.errors import ClusterError

_SHARING = ("contract", "docs", "examples", "real", "scenarios")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a module that share a control plane go to one worker, so that it is started once."""
    for item in items:
        place = item.path.relative_to(Path(__file__).parent)
        if place.parts[0] in _SHARING and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(place)))


class Kubectl(Protocol):
    """Runs kubectl with the admin's kubeconfig and returns what it prints."""

    async def __call__(self, *arguments: str, stdin: str = "") -> str: ...


@pytest.fixture(scope="session")
def real_binaries() -> Binaries:
    """The binaries of the real control plane, or a reason to skip."""
    wanted = os.environ.get("KUBEWRIGHT_REAL", "")
    if wanted == "0":
        pytest.skip("KUBEWRIGHT_REAL=0")
    try:
        return at_hand()
    except ClusterError as error:
        if wanted == "1":
            raise
        pytest.skip(f"no real control plane; `make binaries` gets one: {error}")


@pytest.fixture(scope="session")
async def real_cluster(real_binaries: Binaries) -> AsyncIterator[RealCluster]:
    """A running real control plane, shared by the tests of this worker: take a namespace of your own."""
    async with RealCluster(version=real_binaries.version) as cluster:
        yield cluster


@pytest.fixture(scope="module")
async def embedded_cluster() -> AsyncIterator[EmbeddedCluster]:
    """A running embedded control plane, shared by the tests of a module: take a namespace of your own.

    It lives on the loop of the tests, and some of those look at every task and thread there is.
    """
    async with EmbeddedCluster() as cluster:
        await cluster.settled()
        yield cluster


@pytest.fixture(scope="session")
def kubectl(real_cluster: RealCluster) -> Kubectl:
    """kubectl of the server's version."""
    return kubectl_for(real_cluster.kubectl, real_cluster.kubeconfig)


def kubectl_for(binary: Path, kubeconfig: Path) -> Kubectl:
    """kubectl, run as the administrator of a cluster."""

    async def run(*arguments: str, stdin: str = "") -> str:
        child = await asyncio.create_subprocess_exec(
            binary,
            f"--kubeconfig={kubeconfig}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        stdout, stderr = await child.communicate(stdin.encode())
        assert child.returncode == 0, f"kubectl {' '.join(arguments)}: {stderr.decode()}"
        return stdout.decode()

    return run


@pytest.fixture(scope="session")
def gone() -> Callable[[int], bool]:
    """Waits until a process, not necessarily a child, has ended; False if it has not after ten seconds."""
    if not hasattr(os, "pidfd_open"):
        pytest.skip("waiting for a process that is not a child needs Linux")

    def wait(pid: int) -> bool:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        try:
            readable, _, _ = select.select([descriptor], [], [], 10)
            return bool(readable)
        finally:
            os.close(descriptor)

    return wait
