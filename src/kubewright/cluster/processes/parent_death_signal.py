"""Exec a command with PR_SET_PDEATHSIG: the kernel kills it when its parent dies. Linux only; run as a script.

    python -I -S parent_death_signal.py PARENT_PID COMMAND [ARGUMENT ...]

`process.Process` puts this in front of each command. It asks the kernel for SIGKILL at the parent's death, then
replaces itself with the command, which keeps the setting and the process id. Calling prctl between fork and exec in the
parent (`preexec_fn`) is unsafe when the parent has threads.
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
        # The parent died before prctl: the kernel will never send the signal.
        sys.exit("the parent is gone")
    # Python ignores SIGPIPE, and an ignored signal stays ignored across exec.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execv(command[0], command)  # noqa: S606 - exec without a shell is the purpose of this script
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    _main()
