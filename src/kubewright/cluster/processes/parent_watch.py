"""Parent-death watch: kill the child processes of a parent that died. Run as a script, never imported.

    python -I -S parent_watch.py PARENT_PID [FOLDER]

It reads lines from its standard input, a pipe whose other end the parent holds: `+PID` adds a process to kill when
the parent dies, `-PID` removes it. When the pipe closes, or the parent process id changes (a forked child of the parent
may hold the pipe open), it kills the remaining processes, removes the folder if one is given, and exits.

On Linux the kernel kills the children at once (`parent_death_signal`), also if this process is killed too; there
this process only removes the folder. Elsewhere it does both. Started by `process.ParentWatch`.
"""

import contextlib
import os
import select
import shutil
import signal
import sys

__all__ = ()


def _wait_for_parent_exit(parent: int) -> set[int]:
    """Return when the parent has died, with the ids of its running child processes."""
    running: set[int] = set()
    pending = b""
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], 0.5)
        if not readable:
            continue
        chunk = os.read(0, 4096)
        if not chunk:
            break
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            (running.add if line[:1] == b"+" else running.discard)(int(line[1:]))
    return running


def _main() -> None:
    # The parent handles Ctrl-C and a closed terminal; this process ends when the parent does.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for process in _wait_for_parent_exit(int(sys.argv[1])):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    for folder in sys.argv[2:]:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _main()
