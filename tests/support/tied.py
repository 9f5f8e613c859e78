"""Runs a command that dies with the process that started it, even when that one is killed with SIGKILL.

`python tied.py PARENT_PID COMMAND…` asks the kernel for SIGKILL on the parent's death and becomes the command, so the
command keeps this process id. It imports nothing of the project: it must start in milliseconds and under any prefix.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Tie this process to its parent and replace it by the command.

    Args:
        arguments: the parent's process id, then the command and its arguments.
    """
    parent, *command = arguments
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) was refused")
    if os.getppid() != int(parent):  # the parent died before the tie was made
        sys.exit("the process that asked for this command is gone")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
