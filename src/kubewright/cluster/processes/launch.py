"""Become a command that the kernel kills when its parent dies. Linux only; run as a script, never imported.

    python -I -S launch.py PARENT_PID COMMAND [ARGUMENT ...]

`processes` puts this in front of each component. It asks the kernel for SIGKILL at the parent's death and
then replaces itself with the command, which keeps that request and the process id. Doing the same between
fork and exec in the parent (`preexec_fn`) is unsafe once the parent has threads.
"""

import ctypes
import os
import signal
import sys

__all__ = ()

_PR_SET_PDEATHSIG = 1


def _main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        # The parent died before the request was made; nothing would ever fulfil it.
        sys.exit("the parent is gone")
    # Python ignores SIGPIPE, and an ignored signal stays ignored across exec.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execv(command[0], command)  # noqa: S606 - this is the whole point, and no shell is wanted
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    _main()
