"""Outlive a parent just long enough to kill what it left behind. Run as a script, never imported.

    python -I -S guardian.py PARENT_PID [FOLDER]

Reads lines from its standard input, a pipe whose other end only the parent has: `+PID` is to be killed
should the parent die, `-PID` no longer is. When the pipe closes, or the parent is not the parent any more
(a forked child of it may hold the pipe open), it kills what is left, removes the folder if one is given,
and ends.

On Linux the kernel does the killing at once (see `launch`), also when this process is killed as well; there
it only cleans up. Elsewhere it does both.
"""

import contextlib
import os
import select
import shutil
import signal
import sys

__all__ = ()


def _wait_for_end(parent: int) -> set[int]:
    """Until the parent is gone; the processes it had running then."""
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
    # Ctrl-C and a closing terminal are the parent's to handle; what matters here is whether it lives.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for process in _wait_for_end(int(sys.argv[1])):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    for folder in sys.argv[2:]:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _main()
