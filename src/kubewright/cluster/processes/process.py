"""Long-lived child processes that cannot outlive this one, and whose crash is reported with the end of their log.

Two independent mechanisms end them: on Linux the kernel kills a child at its parent's death (`parent_death_signal`),
and on any POSIX system a watch process does (`parent_watch`). Knows no Kubernetes component; `planes.real` names and
starts them.

PR_SET_PDEATHSIG is tied to the thread that started the child: run the event loop in a thread that stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import final

from kubewright._base.files import open_private
from kubewright.errors import ClusterError

__all__ = ("ParentWatch", "Process")

_TAIL_LINES = 15
_TAIL_BYTES = 64 * 1024


@final
class ParentWatch:
    """A process that kills the children of this one, and removes a folder, when this one dies."""

    def __init__(self, *, remove: Path | None = None) -> None:
        script = Path(__file__).with_name("parent_watch.py")
        folder = () if remove is None else (str(remove),)
        self._child = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-I", "-S", str(script), str(os.getpid()), *folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    def add(self, pid: int) -> None:
        """Kill this process when the parent dies."""
        self._send_line(f"+{pid}\n")

    def remove(self, pid: int) -> None:
        """Stop watching a process that has ended: another process may get its id."""
        self._send_line(f"-{pid}\n")

    def close(self) -> None:
        """End the watch process. Call it after the last watched process has ended."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()

    def _send_line(self, line: str) -> None:
        assert self._child.stdin is not None
        # The watch process may have been killed; on Linux the parent-death signal still works.
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.write(line.encode())


@final
class Process:
    """One command, which can be stopped and started again, with one name and one log."""

    def __init__(self, name: str, command: Sequence[str], *, log: Path, parent_watch: ParentWatch) -> None:
        self.name = name
        self.command = tuple(command)
        self.log = log
        self._parent_watch = parent_watch
        self._child: asyncio.subprocess.Process | None = None
        self._exit_task: asyncio.Task[int] | None = None
        self._stopping = False

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._child.pid if self._child is not None and self.running else None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._exit_task is not None and not self._exit_task.done()

    @property
    def crashed(self) -> bool:
        """Whether it ended without `stop`."""
        return self._exit_task is not None and self._exit_task.done() and not self._stopping

    async def start(self) -> None:
        """Start the command. It may fail at once: check `crashed` while waiting until it is ready."""
        assert not self.running, f"{self.name} is running already"
        self._stopping = False
        prefix = () if sys.platform != "linux" else self._death_signal_prefix()
        with open_private(self.log) as log:
            try:
                self._child = await asyncio.create_subprocess_exec(
                    *prefix,
                    *self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    # A new session: Ctrl-C in the terminal reaches this process only, which stops the others in order.
                    start_new_session=True,
                )
            except OSError as error:
                raise ClusterError(f"{self.name} cannot be started: {error}.") from error
        self._parent_watch.add(self._child.pid)
        self._exit_task = asyncio.create_task(self._wait_for_exit(self._child), name=f"{self.name} ends")

    async def wait(self) -> int:
        """Wait until it has ended; its exit code, negative for a signal."""
        assert self._exit_task is not None, f"{self.name} was never started"
        return await asyncio.shield(self._exit_task)

    def send(self, number: signal.Signals) -> None:
        """Send a signal; a process that has ended gets none."""
        if self._child is not None and self.running:
            # Not the child's own send_signal: it may collect the exit code before the event loop does.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, number)

    async def pause(self) -> None:
        """Suspend it with SIGSTOP. Waits until all its threads have stopped, which the signal alone does not ensure."""
        pid = self.pid
        self.send(signal.SIGSTOP)
        if pid is not None and hasattr(os, "waitid"):  # not on macOS
            with contextlib.suppress(ChildProcessError):  # it has ended
                await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    async def stop(self, *, number: signal.Signals = signal.SIGTERM, grace: float = 10.0) -> None:
        """Send the signal, wait, and kill the process if it has not ended after `grace` seconds."""
        self._stopping = True
        if not self.running:
            return
        self.send(number)
        self.send(signal.SIGCONT)  # a suspended process handles the signal only when it continues
        try:
            async with asyncio.timeout(grace):
                await self.wait()
        except TimeoutError:
            self.send(signal.SIGKILL)
            await self.wait()

    def failure(self) -> ClusterError:
        """Why it crashed: how it ended, and the last lines of its log."""
        code = self._exit_task.result() if self._exit_task is not None and self._exit_task.done() else 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return ClusterError(f"{self.name} {how}; its log {self.log} ends:\n{self.tail()}")

    def tail(self, lines: int = _TAIL_LINES) -> str:
        """The last lines of its log, indented."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
                text = log.read().decode("utf-8", "replace")
        except OSError:
            return "  (no log)"
        return "\n".join(f"  {line}" for line in text.splitlines()[-lines:]) or "  (empty)"

    def _death_signal_prefix(self) -> tuple[str, ...]:
        script = Path(__file__).with_name("parent_death_signal.py")
        return (sys.executable, "-I", "-S", str(script), str(os.getpid()))

    async def _wait_for_exit(self, child: asyncio.subprocess.Process) -> int:
        code = await child.wait()
        self._parent_watch.remove(child.pid)
        return code
