"""Long-lived child processes that cannot outlive this one, and say why when they die.

Two independent guards: on Linux the kernel kills a child at its parent's death (`launch`), and on any POSIX
system a guardian process notices and kills (`guardian`). Output goes to a log file per process, whose end
is part of the error when it crashes. Knows nothing of Kubernetes; `real` names the components and starts
them.

The kernel's guard is tied to the thread that started the child: run the event loop in a thread that stays.
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

from kubewright.errors import ClusterError

__all__ = ("Guardian", "Process")

_TAIL_LINES = 15
_TAIL_BYTES = 64 * 1024


@final
class Guardian:
    """The process that kills the others, and removes a folder, when this one dies."""

    def __init__(self, *, remove: Path | None = None) -> None:
        script = Path(__file__).with_name("guardian.py")
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

    def watch(self, pid: int) -> None:
        """From now on this process dies with us."""
        self._tell(f"+{pid}\n")

    def forget(self, pid: int) -> None:
        """That process has ended; its number may become somebody else's."""
        self._tell(f"-{pid}\n")

    def close(self) -> None:
        """Let the guardian go, after the last process it watches has ended."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()

    def _tell(self, line: str) -> None:
        assert self._child.stdin is not None
        # A guardian that was killed is no reason to fail: the kernel's guard is still there.
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.write(line.encode())


@final
class Process:
    """One command, started, stopped and started again under one name and into one log."""

    def __init__(self, name: str, command: Sequence[str], *, log: Path, guardian: Guardian) -> None:
        self.name = name
        self.command = tuple(command)
        self.log = log
        self._guardian = guardian
        self._child: asyncio.subprocess.Process | None = None
        self._end: asyncio.Task[int] | None = None
        self._stopping = False

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._child.pid if self._child is not None and self.running else None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._end is not None and not self._end.done()

    @property
    def crashed(self) -> bool:
        """Whether it ended although nobody here asked it to."""
        return self._end is not None and self._end.done() and not self._stopping

    async def start(self) -> None:
        """Start the command. It may fail at once: look at `crashed` while waiting for it to be of use."""
        assert not self.running, f"{self.name} is running already"
        self._stopping = False
        guard = () if sys.platform != "linux" else self._launcher()
        with self.log.open("ab") as log:
            try:
                self._child = await asyncio.create_subprocess_exec(
                    *guard,
                    *self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    # Ctrl-C in the terminal reaches this process only, which then stops the others in order.
                    start_new_session=True,
                )
            except OSError as error:
                raise ClusterError(f"{self.name} cannot be started: {error}.") from error
        self._guardian.watch(self._child.pid)
        self._end = asyncio.create_task(self._wait(self._child), name=f"{self.name} ends")

    async def ended(self) -> int:
        """Wait until it has ended; its exit code, negative for a signal."""
        assert self._end is not None, f"{self.name} was never started"
        return await asyncio.shield(self._end)

    def send(self, number: signal.Signals) -> None:
        """Send a signal; a process that has ended gets none."""
        if self._child is not None and self.running:
            # Not the child's own send_signal: it may collect the exit code before the event loop does.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, number)

    async def pause(self) -> None:
        """Stop its clock. Returns when it stands still: the signal alone leaves its threads some time to go on."""
        pid = self.pid
        self.send(signal.SIGSTOP)
        if pid is not None and hasattr(os, "waitid"):  # not on macOS
            with contextlib.suppress(ChildProcessError):  # it has ended
                await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    async def stop(self, *, number: signal.Signals = signal.SIGTERM, grace: float = 10.0) -> None:
        """Ask it to end, wait, and kill it if it has not after `grace` seconds."""
        self._stopping = True
        if not self.running:
            return
        self.send(number)
        self.send(signal.SIGCONT)  # a paused process would never see the signal before
        try:
            async with asyncio.timeout(grace):
                await self.ended()
        except TimeoutError:
            self.send(signal.SIGKILL)
            await self.ended()

    def failure(self) -> ClusterError:
        """Why it crashed: how it ended, and the last lines of its log."""
        code = self._end.result() if self._end is not None and self._end.done() else 0
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

    def _launcher(self) -> tuple[str, ...]:
        script = Path(__file__).with_name("launch.py")
        return (sys.executable, "-I", "-S", str(script), str(os.getpid()))

    async def _wait(self, child: asyncio.subprocess.Process) -> int:
        code = await child.wait()
        self._guardian.forget(child.pid)
        return code
