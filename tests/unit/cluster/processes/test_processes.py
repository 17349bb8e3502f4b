"""Children that cannot outlive their parent, and crashes that say why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubewright.cluster.processes.processes import Guardian, Process
from kubewright.errors import ClusterError

SLEEP = ["/bin/sh", "-c", "echo up; exec sleep 1000"]

# A parent as users have one: starts a child under guard, says both process ids, and waits to be killed.
PARENT = """
import asyncio, sys
from pathlib import Path
from kubewright.cluster.processes.processes import Guardian, Process

async def main() -> None:
    folder = Path(sys.argv[1])
    guardian = Guardian(remove=folder / "disposable")
    process = Process("sleeper", ["/bin/sleep", "1000"], log=folder / "log", guardian=guardian)
    await process.start()
    print(process.pid, guardian.pid, flush=True)
    await process.ended()

asyncio.run(main())
"""


@pytest.fixture
def guardian() -> Iterator[Guardian]:
    guardian = Guardian()
    yield guardian
    guardian.close()


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    (tmp_path / "disposable").mkdir()
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        child, guard = map(int, running.stdout.readline().split())
        yield running, child, guard
        running.kill()


async def test_a_process_is_stopped_with_sigterm(tmp_path: Path, guardian: Guardian) -> None:
    process = Process("sleeper", SLEEP, log=tmp_path / "log", guardian=guardian)
    await process.start()
    assert process.running

    await process.stop()

    assert await process.ended() == -signal.SIGTERM
    assert not process.crashed
    assert process.pid is None


async def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path, guardian: Guardian) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    script = f"trap '' TERM; echo > {ready}; while :; do sleep 1000; done"
    process = Process("stubborn", ["/bin/sh", "-c", script], log=tmp_path / "log", guardian=guardian)
    await process.start()
    ready.read_text()

    await process.stop(grace=0.05)

    assert await process.ended() == -signal.SIGKILL


async def test_a_paused_process_can_be_stopped(tmp_path: Path, guardian: Guardian) -> None:
    process = Process("sleeper", SLEEP, log=tmp_path / "log", guardian=guardian)
    await process.start()
    await process.pause()

    await process.stop()

    assert not process.running


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux says which process stands still")
async def test_a_paused_process_stands_still_each_time(tmp_path: Path, guardian: Guardian) -> None:
    process = Process("busy", [sys.executable, "-c", "while True: pass"], log=tmp_path / "log", guardian=guardian)
    await process.start()

    for _ in range(20):
        await process.pause()
        assert state_of(process) == "T"
        process.send(signal.SIGCONT)

    await process.stop()
    await process.pause()  # what has ended stands still as it is


def state_of(process: Process) -> str:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


async def test_a_process_can_be_started_again(tmp_path: Path, guardian: Guardian) -> None:
    process = Process("sleeper", SLEEP, log=tmp_path / "log", guardian=guardian)
    await process.start()
    first = process.pid
    await process.stop()

    await process.start()

    assert process.running
    assert process.pid != first
    await process.stop()


async def test_a_crash_shows_the_last_lines_of_the_log(tmp_path: Path, guardian: Guardian) -> None:
    script = "for i in $(seq 100); do echo line $i; done; exit 7"
    process = Process("faulty", ["/bin/sh", "-c", script], log=tmp_path / "log", guardian=guardian)
    await process.start()
    await process.ended()

    assert process.crashed
    message = str(process.failure())
    assert message.startswith(f"faulty ended with exit code 7; its log {tmp_path / 'log'} ends:")
    assert message.splitlines()[1:] == [f"  line {number}" for number in range(86, 101)]


async def test_a_process_that_was_killed_names_the_signal(tmp_path: Path, guardian: Guardian) -> None:
    process = Process("sleeper", SLEEP, log=tmp_path / "log", guardian=guardian)
    await process.start()
    process.send(signal.SIGKILL)
    await process.ended()

    assert "sleeper was killed by SIGKILL" in str(process.failure())


async def test_a_binary_that_cannot_run_is_a_cluster_error(tmp_path: Path, guardian: Guardian) -> None:
    process = Process("missing", [str(tmp_path / "nothing")], log=tmp_path / "log", guardian=guardian)
    try:
        await process.start()
        await process.ended()
        error = process.failure()
    except ClusterError as caught:
        error = caught

    assert "No such file" in str(error)


def test_no_child_outlives_a_parent_that_is_killed(
    parent: tuple[subprocess.Popen[str], int, int], tmp_path: Path, gone: Callable[[int], bool]
) -> None:
    running, child, guard = parent

    running.kill()

    assert gone(child)
    assert gone(guard)
    assert not (tmp_path / "disposable").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children itself")
def test_no_child_outlives_a_parent_whose_guardian_was_killed_before(
    parent: tuple[subprocess.Popen[str], int, int], gone: Callable[[int], bool]
) -> None:
    running, child, guard = parent
    os.kill(guard, signal.SIGKILL)
    assert gone(guard)

    running.kill()

    assert gone(child)


def test_the_guardian_kills_what_the_kernel_would_not(gone: Callable[[int], bool]) -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as unguarded:
        guardian = Guardian()
        guardian.watch(unguarded.pid)

        guardian.close()

        assert unguarded.wait(10) == -signal.SIGKILL
        assert gone(guardian.pid)


def test_the_guardian_leaves_alone_what_has_ended() -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as other:
        guardian = Guardian()
        guardian.watch(other.pid)
        guardian.forget(other.pid)

        guardian.close()

        assert other.poll() is None
        other.kill()
