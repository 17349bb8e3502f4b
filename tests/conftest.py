"""Fixtures every test may use: a real control plane, its kubectl, and a way to wait for a process to be gone.

The control plane is started once per test worker, in about three seconds, and only from binaries that are at hand:
`make binaries` gets them, which may take minutes and is no business of a test. KUBEWRIGHT_REAL=0 skips every test
that needs one; KUBEWRIGHT_REAL=1 fails rather than skips. What was skipped is counted at the end of the run.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import HealthCheck, settings

from kubewright.cluster.binaries.finder import Binaries, find_installed
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.errors import ClusterError
from kubewright.testing.time_limits import slowness

# A shell without job control starts its background commands deaf to Ctrl-C, and all they start inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is, and nothing about the property. The examples are the same each
# time, so that a failure says something about a change and not about luck; KUBEWRIGHT_SEARCH=1 looks for others.
settings.register_profile(
    "unhurried",
    deadline=None,
    derandomize=os.environ.get("KUBEWRIGHT_SEARCH") != "1",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unhurried")

# What takes minutes by the clock begins first, and what takes milliseconds last, so that no worker waits for the other.
_ORDER = (
    "scenarios",
    "cluster",
    "scaffold",
    "kubectl",
    "runtime",
    "generate",
    "contract",
    "security",
    "differential",
    "clients",
    "examples",
    "docs",
    "property",
    "unit",
)
_NO_REAL = "no real control plane"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a module go to one worker, and those of a folder that is a package: they share a control plane."""
    here = Path(__file__).parent
    ranks = {name: rank for rank, name in enumerate(_ORDER)}
    items.sort(key=lambda item: ranks.get(item.path.relative_to(here).parts[0], 0))
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            is_package = (item.path.parent / "__init__.py").exists()
            home = item.path.parent if is_package else item.path
            item.add_marker(pytest.mark.xdist_group(str(home.relative_to(here))))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say aloud how many tests had no real control plane to ask: such a run shows less than it seems to."""
    # A skip is told as a place (file, line) and a reason.
    reasons = [str(report.longrepr[2]) for report in terminalreporter.getreports("skipped")]
    for reason, count in Counter(reason for reason in reasons if _NO_REAL in reason).items():
        terminalreporter.write_sep("!", f"{count} tests SKIPPED: they ask a real control plane", red=True, bold=True)
        terminalreporter.line(reason.removeprefix("Skipped: "))


class Kubectl(Protocol):
    """Runs kubectl with the admin's kubeconfig and returns what it prints."""

    async def __call__(self, *arguments: str, stdin: str = "") -> str: ...


@pytest.fixture(scope="session")
def real_binaries() -> Binaries:
    """The binaries of the real control plane, or a reason to skip."""
    wanted = os.environ.get("KUBEWRIGHT_REAL", "")
    if wanted == "0":
        pytest.skip(f"{_NO_REAL}: KUBEWRIGHT_REAL=0 leaves it out")
    try:
        return find_installed()
    except ClusterError as error:
        if wanted == "1":
            raise
        pytest.skip(f"{_NO_REAL}; `make binaries` gets one: {error}")


@pytest.fixture(scope="session")
async def real_cluster(real_binaries: Binaries) -> AsyncIterator[RealCluster]:
    """A running real control plane, shared by the tests of this worker: take a namespace of your own."""
    async with RealCluster(start_timeout=300, version=real_binaries.version) as cluster:
        yield cluster


@pytest.fixture(scope="module")
async def embedded_cluster() -> AsyncIterator[EmbeddedCluster]:
    """A running embedded control plane, shared by the tests of a module: take a namespace of your own.

    It lives on the loop of the tests, and some of those look at every task and thread there is. No more storage than
    on the real one, which has no nodes: claims wait for a volume that somebody makes.
    """
    async with EmbeddedCluster(storage=False) as cluster:
        await cluster.wait_for_controllers()
        yield cluster


@pytest.fixture(scope="module")
def audit_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has a line for each request to the control plane of the module."""
    return tmp_path_factory.mktemp("audit") / "audit.log"


@pytest.fixture(scope="module")
async def own_cluster(real_binaries: Binaries, audit_log: Path) -> AsyncIterator[RealCluster]:
    """A control plane for the tests of one module alone: take a namespace of your own."""
    async with RealCluster(start_timeout=300, version=real_binaries.version, audit_log=audit_log) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kubectl(real_cluster: RealCluster) -> Kubectl:
    """kubectl of the server's version."""
    return kubectl_for(real_cluster.kubectl, real_cluster.kubeconfig)


def kubectl_for(binary: Path, kubeconfig: Path, *flags: str) -> Kubectl:
    """kubectl, run as the administrator of a cluster, with flags that every command gets."""

    async def run(*arguments: str, stdin: str = "") -> str:
        child = await asyncio.create_subprocess_exec(
            binary,
            f"--kubeconfig={kubeconfig}",
            *flags,
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
    """Waits until a process, not necessarily a child, has ended; False if it has not after half a minute."""
    if not hasattr(os, "pidfd_open"):
        pytest.skip("waiting for a process that is not a child needs Linux")

    def wait(pid: int) -> bool:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        try:
            readable, _, _ = select.select([descriptor], [], [], 30 * slowness())
            return bool(readable)
        finally:
            os.close(descriptor)

    return wait
