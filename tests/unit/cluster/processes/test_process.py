"""Child processes cannot outlive their parent, and a crash reports the end of the log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubewright.cluster.processes.process import ParentWatch, Process
from kubewright.errors import ClusterError

SLEEP = ["/bin/sh", "-c", "echo up; exec sleep 1000"]

# A parent as users have one: starts a child, prints the process ids of child and watch, and waits to be killed.
PARENT = """
import asyncio, sys
from pathlib import Path
from kubewright.cluster.processes.process import ParentWatch, Process

async def main() -> None:
    folder = Path(sys.argv[1])
    parent_watch = ParentWatch(remove=folder / "temporary")
    process = Process("sleeper", ["/bin/sleep", "1000"], log=folder / "log", parent_watch=parent_watch)
    await process.start()
    print(process.pid, parent_watch.pid, flush=True)
    await process.wait()

asyncio.run(main())
"""


@pytest.fixture
def parent_watch() -> Iterator[ParentWatch]:
    parent_watch = ParentWatch()
    yield parent_watch
    parent_watch.close()


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    (tmp_path / "temporary").mkdir()
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        child, watch = map(int, running.stdout.readline().split())
        yield running, child, watch
        running.kill()


async def test_a_process_is_stopped_with_sigterm(tmp_path: Path, parent_watch: ParentWatch) -> None:
    process = Process("sleeper", SLEEP, log=tmp_path / "log", parent_watch=parent_watch)
    await process.start()
    assert process.running

    await process.stop()

    assert await process.wait() == -signal.SIGTERM
    assert not process.crashed
    assert process.pid is None


async def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path, parent_watch: ParentWatch) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    script = f"trap '' TERM; echo > {ready}; while :; do sleep 1000; done"
    process = Process("stubborn", ["/bin/sh", "-c", script], log=tmp_path / "log", parent_watch=parent_watch)
    await process.start()
    ready.read_text()

    await process.stop(grace=0.05)

    assert await process.wait() == -signal.SIGKILL


async def test_a_paused_process_can_be_stopped(tmp_path: Path, parent_watch: ParentWatch) -> None:
    process = Process("sleeper", SLEEP, log=tmp_path / "log", parent_watch=parent_watch)
    await process.start()
    await process.pause()

    await process.stop()

    assert not process.running


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux says which process stands still")
async def test_a_paused_process_stops_all_its_threads_each_time(tmp_path: Path, parent_watch: ParentWatch) -> None:
    process = Process(
        "busy", [sys.executable, "-c", "while True: pass"], log=tmp_path / "log", parent_watch=parent_watch
    )
    await process.start()

    for _ in range(20):
        await process.pause()
        assert state_of(process) == "T"
        process.send(signal.SIGCONT)

    await process.stop()
    await process.pause()  # no effect on a process that has ended


def state_of(process: Process) -> str:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


async def test_a_process_can_be_started_again(tmp_path: Path, parent_watch: ParentWatch) -> None:
    process = Process("sleeper", SLEEP, log=tmp_path / "log", parent_watch=parent_watch)
    await process.start()
    first = process.pid
    await process.stop()

    await process.start()

    assert process.running
    assert process.pid != first
    await process.stop()


async def test_a_crash_shows_the_last_lines_of_the_log(tmp_path: Path, parent_watch: ParentWatch) -> None:
    script = "for i in $(seq 100); do echo line $i; done; exit 7"
    process = Process("faulty", ["/bin/sh", "-c", script], log=tmp_path / "log", parent_watch=parent_watch)
    await process.start()
    await process.wait()

    assert process.crashed
    message = str(process.failure())
    assert message.startswith(f"faulty ended with exit code 7; its log {tmp_path / 'log'} ends:")
    assert message.splitlines()[1:] == [f"  line {number}" for number in range(86, 101)]


async def test_a_process_that_was_killed_names_the_signal(tmp_path: Path, parent_watch: ParentWatch) -> None:
    process = Process("sleeper", SLEEP, log=tmp_path / "log", parent_watch=parent_watch)
    await process.start()
    process.send(signal.SIGKILL)
    await process.wait()

    assert "sleeper was killed by SIGKILL" in str(process.failure())


async def test_a_binary_that_cannot_run_is_a_cluster_error(tmp_path: Path, parent_watch: ParentWatch) -> None:
    process = Process("missing", [str(tmp_path / "nothing")], log=tmp_path / "log", parent_watch=parent_watch)
    try:
        await process.start()
        await process.wait()
        error = process.failure()
    except ClusterError as caught:
        error = caught

    assert "No such file" in str(error)


def test_no_child_outlives_a_parent_that_is_killed(
    parent: tuple[subprocess.Popen[str], int, int], tmp_path: Path, gone: Callable[[int], bool]
) -> None:
    running, child, watch = parent

    running.kill()

    assert gone(child)
    assert gone(watch)
    assert not (tmp_path / "temporary").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children itself")
def test_no_child_outlives_a_parent_whose_parent_watch_was_killed_before(
    parent: tuple[subprocess.Popen[str], int, int], gone: Callable[[int], bool]
) -> None:
    running, child, watch = parent
    os.kill(watch, signal.SIGKILL)
    assert gone(watch)

    running.kill()

    assert gone(child)


def test_the_parent_watch_kills_what_the_kernel_would_not(gone: Callable[[int], bool]) -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as child:
        parent_watch = ParentWatch()
        parent_watch.add(child.pid)

        parent_watch.close()

        assert child.wait(10) == -signal.SIGKILL
        assert gone(parent_watch.pid)


def test_the_parent_watch_spares_processes_that_were_removed() -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as other:
        parent_watch = ParentWatch()
        parent_watch.add(other.pid)
        parent_watch.remove(other.pid)

        parent_watch.close()

        assert other.poll() is None
        other.kill()
